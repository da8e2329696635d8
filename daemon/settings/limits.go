package settings

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"time"

	"github.com/executord/executord/ipc/protocol"
)

// Limits of one program. Nil means the default of package pool. The tag limit is the name in protocol.Limits.
type Limits struct {
	CPU          *time.Duration `limit:"cpuMs" env:"CPU" placeholder:"TIME" help:"CPU time of a program"`
	Wall         *time.Duration `limit:"wallMs" env:"WALL" placeholder:"TIME" help:"Its own time, without waiting for tools"`
	Total        *time.Duration `limit:"totalMs" env:"TOTAL" placeholder:"TIME" help:"Its time in all"`
	HeapMiB      *int64         `limit:"heapMiB" name:"heap" env:"HEAP" placeholder:"MIB" help:"Its JavaScript heap"`
	BufferMiB    *int64         `limit:"bufferMiB" name:"buffers" env:"BUFFERS" placeholder:"MIB" help:"Its ArrayBuffers and memories of WebAssembly"`
	SlackMiB     *int64         `limit:"slackMiB" name:"slack" env:"SLACK" placeholder:"MIB" help:"Its process beyond that at rest, twice the heap and the buffers"`
	StackKiB     *int64         `limit:"stackKiB" name:"stack" env:"STACK" placeholder:"KIB" help:"Its JavaScript stack"`
	ResultBytes  *int64         `limit:"resultBytes" name:"result" env:"RESULT" placeholder:"BYTES" help:"Its encoded result"`
	MessageBytes *int64         `limit:"messageBytes" name:"tool-message" env:"TOOL_MESSAGE" placeholder:"BYTES" help:"Arguments of one tool call, its answer, and one HTTP request"`
	ModuleBytes  *int64         `limit:"moduleBytes" name:"modules" env:"MODULES" placeholder:"BYTES" help:"Its code and modules together"`
	ValueDepth   *int64         `limit:"valueDepth" name:"value-depth" env:"VALUE_DEPTH" placeholder:"N" help:"Nesting of one value that it gets or gives"`
	ValueParts   *int64         `limit:"valueParts" name:"value-parts" env:"VALUE_PARTS" placeholder:"N" help:"Objects and primitives in one such value"`
	LogBytes     *int64         `limit:"logBytes" name:"log" env:"LOG" placeholder:"BYTES" help:"Text of its console lines that are kept"`
	LogLines     *int64         `limit:"logLines" name:"log-lines" env:"LOG_LINES" placeholder:"N" help:"Its console lines that are kept"`
	ToolCalls    *int64         `limit:"toolCalls" name:"tool-calls" env:"TOOL_CALLS" placeholder:"N" help:"Its tool calls"`
	InFlight     *int64         `limit:"toolCallsInFlight" name:"tool-calls-in-flight" env:"TOOL_CALLS_IN_FLIGHT" placeholder:"N" help:"Its tool calls at once; more wait for their turn"`
	Fetches      *int64         `limit:"fetches" name:"fetches" env:"FETCHES" placeholder:"N" help:"Its HTTP requests"`
	FetchBytes   *int64         `limit:"fetchBytes" name:"fetch-bytes" env:"FETCH_BYTES" placeholder:"BYTES" help:"Bodies of its HTTP requests and responses"`
	Timers       *int64         `limit:"timers" name:"timers" env:"TIMERS" placeholder:"N" help:"Its timers that are pending"`
}

// limitText lists the limits by the names of their settings.
func limitText(l protocol.Limits) string {
	var list []string
	for s := range (Limits{}).fields() {
		list = append(list, s.name+" "+s.text(*l.Field(s.limit)))
	}
	return strings.Join(list, ", ")
}

// limitSetting is one field of Limits.
type limitSetting struct {
	name  string // of the flag, without the prefix
	limit string
	value any // *time.Duration or *int64, nil where it is not set
}

func (s limitSetting) text(n int64) string {
	if _, ok := s.value.(*time.Duration); ok {
		return (time.Duration(n) * time.Millisecond).String()
	}
	return fmt.Sprint(n)
}

// fields are those of Limits in their order.
func (l Limits) fields() iter.Seq[limitSetting] {
	return func(yield func(limitSetting) bool) {
		v := reflect.ValueOf(l)
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name := cmp.Or(f.Tag.Get("name"), strings.ToLower(f.Name))
			if !yield(limitSetting{name, f.Tag.Get("limit"), v.Field(i).Interface()}) {
				return
			}
		}
	}
}

// Apply overwrites what is set, and refuses what is not positive.
func (l Limits) Apply(prefix string, into *protocol.Limits) error {
	var faults []error
	for s := range l.fields() {
		n, set := int64(0), false
		switch v := s.value.(type) {
		case *time.Duration:
			if set = v != nil; set {
				n = v.Milliseconds()
				if n <= 0 {
					faults = append(faults, fmt.Errorf("--%s-%s is %s, must be at least 1ms", prefix, s.name, *v))
				}
			}
		case *int64:
			if set = v != nil; set {
				n = *v
				if n <= 0 {
					faults = append(faults, fmt.Errorf("--%s-%s is %d, must be positive", prefix, s.name, n))
				}
			}
		}
		if set {
			*into.Field(s.limit) = n
		}
	}
	return errors.Join(faults...)
}
