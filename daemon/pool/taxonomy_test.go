package pool

import (
	"testing"

	"github.com/executord/executord/ipc/protocol"
)

// What the lists of this package leave out of the protocol's table of types, and why. A new type is in the list, or here.
var (
	unclaimed = map[protocol.Type]string{
		protocol.WorkerCrashed: "the pool says it, of a worker that is gone",
	}
	claimedUnrun = map[protocol.Type]string{
		protocol.InvalidParams: "only the worker looks into the tags of the input",
	}
	uncounted = map[protocol.Type]string{
		protocol.Draining:    "the state of the service says it",
		protocol.Maintenance: "the pool is not asked",
		protocol.Internal:    "a fault is no want of room",
	}
	lasting = map[protocol.Type]string{
		protocol.QueueTimeout: "it waited, and the queue bounds how many do",
		protocol.Maintenance:  "the pool is not asked",
		protocol.Internal:     "the operator looks for faults",
	}
)

// partition fails for each type of the taxonomy that which takes and that is not in exactly one of list and exceptions.
func partition(t *testing.T, name string, which func(protocol.TypeInfo) bool, in func(protocol.Type) bool, exceptions map[protocol.Type]string) {
	t.Helper()
	for _, i := range protocol.Types() {
		if _, out := exceptions[i.Type]; which(i) && in(i.Type) == out {
			t.Errorf("%s must be in %s, or with a reason among the exceptions of this test, and not in both", i.Type, name)
		} else if !which(i) && out {
			t.Errorf("%s is no exception: the rule of %s does not speak of it", i.Type, name)
		}
	}
}

func ran(i protocol.TypeInfo) bool { return i.Ran }

func notRun(i protocol.TypeInfo) bool { return !i.Ran }

// refusal is what the same request may escape later.
func refusal(i protocol.TypeInfo) bool { return !i.Ran && i.Retryable }

// TestTaxonomyOfResults: a worker may say each way in which a program ends, and of what did not run what only it can find.
func TestTaxonomyOfResults(t *testing.T) {
	partition(t, "claims (result.go)", ran, func(typ protocol.Type) bool { return claims[typ] }, unclaimed)
	for _, i := range protocol.Types() {
		if _, known := claimedUnrun[i.Type]; notRun(i) && claims[i.Type] != known {
			t.Errorf("%s is of what did not run: a result may say it only with a reason here", i.Type)
		}
		if claims[i.Type] && outcomes[i.Type] == nil {
			t.Errorf("%s, which a result may say, has no label (outcomeLabels, measure.go)", i.Type)
		}
	}
}

// TestTaxonomyOfRefusals: what there is no room for is counted, and not remembered.
func TestTaxonomyOfRefusals(t *testing.T) {
	partition(t, "refusals (measure.go)", refusal, func(typ protocol.Type) bool { return refusals[typ] != nil }, uncounted)
	partition(t, "passing (records.go)", refusal, func(typ protocol.Type) bool { return passing[typ] }, lasting)
	for typ := range passing {
		if i, ok := typ.Info(); !ok || i.Ran {
			t.Errorf("%s is passing (records.go), and runs: it has to be remembered", typ)
		}
	}
}
