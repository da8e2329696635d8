package protocol

import (
	"errors"
	"strings"
	"testing"
)

func TestCheckProviderName(t *testing.T) {
	good := []string{
		"codemode", "tools", "$", "_", "$a1", "x", "async", "of", "get", "from", "__openapiHost", "document", "été",
		"变量", "ℵ", "ℼ", "a\u0301", "a\u200d", "a‿b", "𝒳", "𠮷", "ᢅx", "a·b", strings.Repeat("é", 64),
	}
	for _, name := range good {
		if err := CheckProviderName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestCheckProviderNameRefuses(t *testing.T) {
	tests := []struct{ name, rule string }{
		{"", "is empty"},
		{"\xff", "is not valid Unicode"},
		{strings.Repeat("a", 65), "is longer than 64 code points"},
		{strings.Repeat("界", 65), "is longer than 64 code points"},
		{"1a", "is not a JavaScript identifier"},
		{"a-b", "is not a JavaScript identifier"},
		{"a.b", "is not a JavaScript identifier"},
		{"a b", "is not a JavaScript identifier"},
		{"a\n", "is not a JavaScript identifier"},
		{"\u0301a", "is not a JavaScript identifier"},
		{"\u200da", "is not a JavaScript identifier"},
		{"a\u00a0", "is not a JavaScript identifier"},
		{"\ufeffa", "is not a JavaScript identifier"},
		{"ⸯ", "is not a JavaScript identifier"}, // a letter by category, Pattern_Syntax all the same
		{"😀", "is not a JavaScript identifier"},
		{`\u0061`, "is not a JavaScript identifier"},
		{"a;alert", "is not a JavaScript identifier"},
		{"class", "is a reserved word"},
		{"await", "is a reserved word"},
		{"yield", "is a reserved word"},
		{"let", "is a reserved word"},
		{"null", "is a reserved word"},
		{"eval", "is a reserved word"},
		{"arguments", "is a reserved word"},
		{"require", "has a meaning of its own"},
		{"input", "has a meaning of its own"},
		{"process", "has a meaning of its own"},
		{"undefined", "is a global"},
		{"globalThis", "is a global"},
		{"fetch", "is a global"},
		{"Array", "is a global"},
		{"QuotaExceededError", "is a global"},
		{"WebSocket", "is a global"},
		{"constructor", "is a global"},
		{"__proto__", "is a global"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := CheckProviderName(tt.name)
			if !errors.Is(err, InvalidProvider) || !strings.Contains(err.Error(), tt.rule) {
				t.Errorf("got %v, want %q", err, tt.rule)
			}
		})
	}
}

func TestCheckToolPath(t *testing.T) {
	tests := []struct {
		name string
		path []string
		ok   bool
	}{
		{"one", []string{"get"}, true},
		{"any text", []string{"get-user", "a.b", "then", "__proto__", "日本", " "}, true},
		{"none", nil, false},
		{"empty name", []string{"users", ""}, false},
		{"invalid UTF-8", []string{"\xc3"}, false},
		{"long", []string{strings.Repeat("a", MaxToolNameBytes)}, true},
		{"too long", []string{strings.Repeat("a", MaxToolNameBytes+1)}, false},
		{"too deep", strings.Split(strings.Repeat("a", MaxToolPath+1), ""), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := CheckToolPath(tt.path)
			if (err == nil) != tt.ok || err != nil && !errors.Is(err, InvalidProvider) {
				t.Errorf("got %v", err)
			}
		})
	}
}
