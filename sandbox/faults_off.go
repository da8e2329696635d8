//go:build !executor_faults

package sandbox

// onLog does nothing in a real worker; the build with faults gives it a meaning.
func onLog(*execution, string) {}

// baseURL is that of relative addresses: a program has none.
func baseURL(*execution) string { return "" }
