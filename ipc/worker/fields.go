package worker

import "math"

// The fields of each message in wire order, for both directions: a coder that encodes reads them, one that decodes
// fills them in. Adding, removing or reordering a field is a new Version.

// Bounds on the lists of a worker's frames, so that a frame of one-byte items cannot cost many times its size.
const (
	maxLayers  = 64
	maxPath    = 256
	maxReached = 64
	unbounded  = math.MaxInt // by the frame's size alone
)

func (m *Execute) fields(c *coder) {
	c.uint(&m.ID)
	c.text(&m.Retain)
	c.text(&m.Code)
	c.text(&m.Name)
	c.text(&m.Form)
	c.text(&m.Language)
	c.text(&m.Network)
	c.optional(&m.Input)
	for i := range resize(c, &m.Providers, 3, unbounded) {
		m.Providers[i].fields(c)
	}
	for i := range resize(c, &m.Modules, 3, unbounded) {
		m.Modules[i].fields(c)
	}
	m.Limits.fields(c)
}

func (p *Provider) fields(c *coder) {
	c.text(&p.Name)
	c.bool(&p.All)
	for i := range resize(c, &p.Paths, 1, unbounded) {
		c.texts(&p.Paths[i], maxPath)
	}
}

func (m *Module) fields(c *coder) {
	c.text(&m.Specifier)
	c.text(&m.Type)
	c.bytes(&m.Source)
}

func (l *Limits) fields(c *coder) {
	c.duration(&l.CPU)
	c.duration(&l.Wall)
	c.duration(&l.Total)
	c.int(&l.HeapBytes)
	c.int(&l.BufferBytes)
	c.int(&l.SlackBytes)
	c.int(&l.StackBytes)
	c.int(&l.ResultBytes)
	c.int(&l.MessageBytes)
	c.int(&l.ValueDepth)
	c.int(&l.ValueParts)
	c.int(&l.LogBytes)
	c.int(&l.LogLines)
	c.int(&l.ToolCalls)
	c.int(&l.CallsInFlight)
	c.int(&l.Fetches)
	c.int(&l.Timers)
}

func (m *ToolResult) fields(c *coder) {
	c.uint(&m.ID)
	c.uint(&m.Call)
	c.bool(&m.OK)
	c.last(&m.Value)
}

func (m *Cancel) fields(c *coder) {
	c.uint(&m.ID)
	c.text(&m.Reason)
}

func (m *Invoke) fields(c *coder) {
	c.uint(&m.ID)
	c.uint(&m.Handle)
	c.text(&m.Method)
	m.Limits.fields(c)
	c.last(&m.Args)
}

func (m *Release) fields(c *coder) {
	for i := range resize(c, &m.Handles, 1, unbounded) {
		c.uint(&m.Handles[i])
	}
}

func (m *Hello) fields(c *coder) {
	c.uint32(&m.Version)
	c.uint32(&m.PID)
	c.text(&m.Engine)
	c.texts(&m.Layers, maxLayers)
	c.texts(&m.Missing, maxLayers)
}

func (m *Ready) fields(c *coder) {
	c.duration(&m.Restore)
}

func (m *Heartbeat) fields(c *coder) {
	c.uint(&m.ID)
	c.uint(&m.RSSBytes)
	c.uint(&m.HeapBytes)
	c.duration(&m.CPU)
	c.duration(&m.Wall)
}

func (m *ToolCall) fields(c *coder) {
	c.uint(&m.ID)
	c.uint(&m.Call)
	c.text(&m.Provider)
	c.texts(&m.Path, maxPath)
	c.last(&m.Args)
}

func (m *Fetch) fields(c *coder) {
	c.uint(&m.ID)
	c.uint(&m.Call)
	c.uint(&m.Fetch)
	c.last(&m.Request)
}

func (m *FetchRead) fields(c *coder) {
	c.uint(&m.ID)
	c.uint(&m.Call)
	c.uint(&m.Fetch)
}

func (m *FetchCancel) fields(c *coder) {
	c.uint(&m.ID)
	c.uint(&m.Fetch)
}

func (m *Log) fields(c *coder) {
	c.uint(&m.ID)
	c.text(&m.Level)
	c.duration(&m.Time)
	c.text(&m.Text)
	c.uint(&m.SkippedLines)
	c.uint(&m.SkippedBytes)
}

func (m *Result) fields(c *coder) {
	c.uint(&m.ID)
	c.bool(&m.Retained)
	c.uint(&m.Handles)
	c.optional(&m.Error)
	c.duration(&m.CPU)
	c.duration(&m.Wall)
	c.uint(&m.PeakHeapBytes)
	c.uint(&m.ToolCalls)
	c.texts(&m.Reached, maxReached)
	c.lastOptional(&m.Value)
}

func (m *LastWord) fields(c *coder) {
	c.uint(&m.ID)
	c.text(&m.Type)
	c.text(&m.Detail)
}
