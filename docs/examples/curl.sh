#!/bin/sh
# Runs a program with curl: docs/examples/curl.sh /tmp/executord.sock
curl --silent --show-error --fail --unix-socket "${1:?the socket of the service}" http://localhost/v1/execute \
  --data '{"code": "(input) => input.map((n) => n * n)", "input": [1, 2, 3]}'
