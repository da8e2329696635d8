package server

import (
	"os"
	"strconv"
	"testing"
)

func TestSessionsAreListed(t *testing.T) {
	program, begun := started(untilCancelled)
	r := serve(t, script{"wait": program}, Config{})
	if list := r.Sessions(); len(list) != 0 {
		t.Errorf("before: %+v", list)
	}
	h := r.open(t)
	h.execute("a", "wait", "")
	<-begun
	r.connect(t, true)
	list := r.Sessions()
	if len(list) != 2 {
		t.Fatalf("%+v", list)
	}
	if x := list[0]; x.State != SessionOpen || x.Executions != 1 || x.Identity != "uid:"+strconv.Itoa(os.Getuid()) || x.ID == "" || x.Since.IsZero() {
		t.Errorf("%+v", x)
	}
	if x := list[1]; x.State != SessionOpening || x.Executions != 0 || x.Identity != "addr:127.0.0.1" {
		t.Errorf("%+v", x)
	}
}
