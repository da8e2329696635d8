package codemode

import (
	"fmt"
	"strings"
)

// reservedWords are those after which a tool cannot be named.
var reservedWords = set("abstract arguments await boolean break byte case catch char class const continue debugger default delete do " +
	"double else enum eval export extends false final finally float for function goto if implements import in instanceof int interface " +
	"let long native new null package private protected public return short static super switch synchronized this throw throws " +
	"transient true try typeof undefined var void volatile while with yield")

// reservedNames are those that no namespace can have.
var reservedNames = set("__dispatchers __connectors __logs __CODEMODE_BINARY_TAG __bytesToBase64 __base64ToBytes __encodeCodemodeValue " +
	"__decodeCodemodeValue __stringifyForCodemode __parseForCodemode WorkerEntrypoint CodeExecutor Promise setTimeout Error console")

// SanitizeToolName is the identifier that a tool of that name has in a program.
func SanitizeToolName(name string) string {
	kept := strings.Map(func(r rune) rune {
		switch {
		case r == '-' || r == '.' || isSpace(r):
			return '_'
		case r == '$' || r < 0x80 && isWord(byte(r)):
			return r
		}
		return -1
	}, name)
	switch {
	case kept == "":
		return "_"
	case isDigit(kept[0]):
		return "_" + kept
	case reservedWords[kept]:
		return kept + "_"
	}
	return kept
}

// toolsOf are the tools of a provider by their names in a program; fault says why they cannot be.
func toolsOf(p Provider) (tools map[string]Tool, fault string) {
	tools = make(map[string]Tool, len(p.Tools))
	for _, t := range p.Tools {
		known := SanitizeToolName(t.Name)
		// An empty name that came before does not count, in the reference either.
		if before := tools[known]; before.Name != "" {
			return nil, fmt.Sprintf(`Tool names "%s" and "%s" both sanitize to "%s" in provider "%s"`, before.Name, t.Name, known, p.Name)
		}
		tools[known] = t
	}
	return tools, ""
}

// faultOf says why these providers and connectors cannot be, nothing when they can.
func faultOf(providers []Provider, connectors []Connector) string {
	seen := map[string]bool{}
	for _, p := range providers {
		if fault := faultOfName("Provider", p.Name); fault != "" {
			return fault
		}
		if seen[p.Name] {
			return fmt.Sprintf(`Duplicate provider name "%s"`, p.Name)
		}
		seen[p.Name] = true
	}
	for _, c := range connectors {
		if fault := faultOfName("Connector", c.Name); fault != "" {
			return fault
		}
		if seen[c.Name] {
			return fmt.Sprintf(`Duplicate name "%s" (connector clashes with provider)`, c.Name)
		}
		seen[c.Name] = true
	}
	return ""
}

func faultOfName(what, name string) string {
	switch {
	case reservedNames[name]:
		return fmt.Sprintf(`%s name "%s" is reserved`, what, name)
	case !isIdentifier(name):
		return fmt.Sprintf(`%s name "%s" is not a valid JavaScript identifier`, what, name)
	}
	return ""
}

// isIdentifier tells whether name is one of the dialect: letters of ASCII, digits, _ and $.
func isIdentifier(name string) bool {
	if name == "" || isDigit(name[0]) {
		return false
	}
	for i := range len(name) {
		if name[i] != '$' && !isWord(name[i]) {
			return false
		}
	}
	return true
}
