// Package webcrypto performs the operations of the Web Cryptography API (https://w3c.github.io/webcrypto/) for the
// library of the guest, with Go's standard cryptography and, for Curve448, circl's. Keys stay in a table here: the library
// has their handles only. Package sandbox has a table per execution and drops it with the execution. Nothing here trusts
// its arguments, and no operation runs longer than its bounds allow, since the engine cannot interrupt it. A table belongs
// to one goroutine.
//
// Errors read "Name: message", where Name is that of the DOMException that the standard asks for.
package webcrypto

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// Bounds of one execution's keys and of single operations.
const (
	maxKeyBytes        = 32 << 20 // what all keys weigh together, by weight
	keyOverhead        = 256
	maxModulusImport   = 8192 // bits
	maxModulusGenerate = 4096 // bits
	maxIterations      = 10_000_000
)

// Keys is the table of an execution's keys. The zero value is ready.
type Keys struct {
	keys   map[uint32]any // secret, *rsa.PrivateKey, *rsa.PublicKey, *ecdsa.PrivateKey, *ecdsa.PublicKey, privateOKP, publicOKP
	last   uint32
	weight int
}

type secret []byte

// fault makes the error that the library turns into a DOMException.
func fault(name, format string, args ...any) error {
	return fmt.Errorf(name+": "+format, args...)
}

func dataError(format string, args ...any) error { return fault("DataError", format, args...) }
func operationError(format string, args ...any) error {
	return fault("OperationError", format, args...)
}

//lint:ignore ST1005 the library splits the text at the colon into a name and a message
var errArguments = errors.New("Error: the operation was given wrong arguments")

// arguments reads the arguments of an operation one by one; the first wrong one is remembered.
type arguments struct {
	values []any
	err    error
}

func next[T any](a *arguments) T {
	var zero T
	if len(a.values) == 0 {
		a.err = errArguments
		return zero
	}
	v, ok := a.values[0].(T)
	a.values = a.values[1:]
	if !ok {
		a.err = errArguments
		return zero
	}
	return v
}

func (a *arguments) text() string   { return next[string](a) }
func (a *arguments) number() int    { return int(next[float64](a)) }
func (a *arguments) bytes() []byte  { return next[[]byte](a) }
func (a *arguments) handle() uint32 { return uint32(next[float64](a)) }

// optional gives a text that may be absent.
func (a *arguments) optional() string {
	if len(a.values) > 0 && a.values[0] == nil {
		a.values = a.values[1:]
		return ""
	}
	return a.text()
}

// operations by name. Each checks arguments.err before it acts.
var operations = map[string]func(*Keys, *arguments) (any, error){
	"digest": digest, "generate": generate, "public": public, "import": importKey, "importJWK": importJWK, "export": export,
	"exportJWK": exportJWK, "describe": describe, "drop": drop, "sign": sign, "verify": verify, "encrypt": encrypt, "decrypt": decrypt,
	"wrap": wrap, "unwrap": unwrap, "agree": agree, "hkdf": deriveHKDF, "pbkdf2": derivePBKDF2,
}

// Prefix begins the names of the operations that Op performs.
const Prefix = "crypto."

// Op performs an operation. Its arguments are nil, float64, string or []byte, and bytes are only borrowed.
func (k *Keys) Op(name string, args []any) (any, error) {
	op, ok := operations[strings.TrimPrefix(name, Prefix)]
	if !ok {
		//lint:ignore ST1005 the library splits the text at the colon into a name and a message
		return nil, fmt.Errorf("Error: there is no operation %q", name)
	}
	return op(k, &arguments{values: args})
}

// add puts a key into the table and returns its handle.
func (k *Keys) add(key any) (any, error) {
	w := weigh(key)
	if k.weight+w > maxKeyBytes {
		return nil, operationError("the program has too many keys")
	}
	if k.keys == nil {
		k.keys = map[uint32]any{}
	}
	k.weight += w
	k.last++
	k.keys[k.last] = key
	return float64(k.last), nil
}

func drop(k *Keys, a *arguments) (any, error) {
	h := a.handle()
	if key, ok := k.keys[h]; ok {
		k.weight -= weigh(key)
		delete(k.keys, h)
	}
	return nil, a.err
}

// keyOf finds the key of the handle that is the next argument; its type is an argument's fault too.
func keyOf[T any](k *Keys, a *arguments) T {
	h := a.handle()
	key, ok := k.keys[h].(T)
	if !ok {
		a.err = errArguments
	}
	return key
}

// decode64 decodes base64url as JSON Web Keys have it: no padding, no white space.
func decode64(s string) ([]byte, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || strings.ContainsAny(s, "\r\n") {
		return nil, dataError("a member of the JSON Web Key is not base64url")
	}
	return b, nil
}

func encode64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
