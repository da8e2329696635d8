package v8

import _ "github.com/tommie/v8go/deps/linux_amd64" // V8's static libraries
