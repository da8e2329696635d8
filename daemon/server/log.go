package server

import (
	"context"
	"log/slog"

	"github.com/executord/executord/ipc/protocol"
)

// logEnd says how an execution ended, or why it was not run: at debug, and at warn where it was not the program's doing. What
// the program said of it is the caller's only.
func logEnd(log *slog.Logger, id string, o *protocol.Outcome, err error) {
	var e *protocol.Error
	if err != nil {
		e = protocol.AsError(err)
	} else {
		e = o.Error
	}
	level := slog.LevelDebug
	if e != nil && (e.Type == protocol.WorkerCrashed || e.Type == protocol.Internal) {
		level = slog.LevelWarn
	}
	ctx := context.Background()
	if !log.Enabled(ctx, level) {
		return
	}
	about := []slog.Attr{slog.String("execution", id)}
	if e != nil {
		about = append(about, slog.String("type", string(e.Type)))
	}
	if e != nil && e.Reason != "" {
		about = append(about, slog.String("reason", e.Reason))
	}
	if o == nil {
		log.LogAttrs(ctx, level, "execution refused", about...)
		return
	}
	s := o.Stats
	log.LogAttrs(ctx, level, "execution ended", append(about, slog.String("status", string(o.Status)), slog.String("worker", s.Worker),
		slog.Float64("queueMs", s.QueueMs), slog.Float64("totalMs", s.TotalMs), slog.Float64("cpuMs", s.CPUMs),
		slog.Int64("toolCalls", s.ToolCalls), slog.Int64("fetches", s.Fetches))...)
}
