package server

import (
	"net/http"
	"testing"

	"github.com/executord/executord/ipc/protocol"
)

// TestTaxonomyHasItsStatuses: callers over HTTP come again after 429 and 503, so that these are the statuses of what may
// pass, and of nothing else. After Internal the program may have run.
func TestTaxonomyHasItsStatuses(t *testing.T) {
	for _, i := range protocol.Types() {
		if i.Ran || i.Type == protocol.Internal {
			continue
		}
		status := statusOf(i.Type)
		if again := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable; again != i.Retryable {
			t.Errorf("%s, retryable %t, has status %d (statusOf, answer.go)", i.Type, i.Retryable, status)
		}
	}
}
