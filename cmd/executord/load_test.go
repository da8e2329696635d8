package main

import (
	"os"
	"testing"
)

func TestVariablesOfTheFileComeAfterTheEnvironment(t *testing.T) {
	t.Setenv("OTEL_TEST_A", "environment")
	t.Setenv("OTEL_TEST_B", "") // has the test put it back
	if err := os.Unsetenv("OTEL_TEST_B"); err != nil {
		t.Fatal(err)
	}
	if err := export(map[string]string{"OTEL_TEST_A": "file", "OTEL_TEST_B": "file"}); err != nil {
		t.Fatal(err)
	}
	if a, b := os.Getenv("OTEL_TEST_A"), os.Getenv("OTEL_TEST_B"); a != "environment" || b != "file" {
		t.Errorf("got %q and %q", a, b)
	}
}
