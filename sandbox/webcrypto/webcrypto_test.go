package webcrypto

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
)

func must(t *testing.T, k *Keys, name string, args ...any) any {
	t.Helper()
	v, err := k.Op(Prefix+name, args)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestWrongArguments gives each operation arguments that the library never gives.
func TestWrongArguments(t *testing.T) {
	values := []any{nil, "", "secret", "rsa", "SHA-256", -1.0, 1.0, 1e300, []byte{}, []byte{1}}
	for name := range operations {
		t.Run(name, func(t *testing.T) {
			var k Keys
			must(t, &k, "import", "secret", "raw", make([]byte, 16))
			for _, a := range values {
				for _, b := range values {
					for n := range 5 {
						// No fault is expected of it, only that it ends and answers.
						args := append([]any{a, b}, values[n:]...)
						if v, err := k.Op(Prefix+name, args[:n+1]); err != nil && !strings.Contains(err.Error(), ": ") {
							t.Fatalf("%v gives %v and an error without a name: %v", args[:n+1], v, err)
						}
					}
				}
			}
		})
	}
	if _, err := new(Keys).Op(Prefix+"nothing", nil); err == nil {
		t.Error("an unknown operation is performed")
	}
}

// TestKeyQuota fills the table, and gives a key back.
func TestKeyQuota(t *testing.T) {
	var k Keys
	big := make([]byte, maxKeyBytes/2)
	first := must(t, &k, "import", "secret", "raw", big)
	if _, err := k.Op(Prefix+"import", []any{"secret", "raw", big}); err == nil || !strings.HasPrefix(err.Error(), "OperationError: ") {
		t.Fatalf("the table takes more than its bound: %v", err)
	}
	must(t, &k, "drop", first)
	must(t, &k, "drop", first) // twice does nothing
	must(t, &k, "import", "secret", "raw", big)
	if k.weight != len(big)+keyOverhead {
		t.Errorf("the table weighs %d", k.weight)
	}
}

// TestBorrowedBytes changes the bytes of a call afterwards.
func TestBorrowedBytes(t *testing.T) {
	var k Keys
	b := bytes.Repeat([]byte{7}, 57)
	handles := []any{must(t, &k, "import", "secret", "raw", b)}
	for kind, c := range okpCurves {
		handles = append(handles, must(t, &k, "import", kind, "raw", b[:c.size]))
	}
	clear(b)
	for _, h := range handles {
		if got := must(t, &k, "export", h, "raw").([]byte); got[0] != 7 {
			t.Errorf("key %v is the caller's memory", h)
		}
	}
}

// TestKeyWrap is RFC 3394, 4.6 (256 bits of data with a 256-bit key) and what must be refused.
func TestKeyWrap(t *testing.T) {
	var k Keys
	kek := must(t, &k, "import", "secret", "raw", unhex(t, "000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F"))
	data := unhex(t, "00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F")
	want := unhex(t, "28C9F404C4B810F4CBCCB35CFB87F8263F5786E2D80ED326CBC7F0E71A99F43BFB988B9B7A02DD21")
	wrapped := must(t, &k, "wrap", kek, data).([]byte)
	if !bytes.Equal(wrapped, want) {
		t.Fatalf("wrapped to %x", wrapped)
	}
	if got := must(t, &k, "unwrap", kek, wrapped).([]byte); !bytes.Equal(got, data) {
		t.Errorf("unwrapped to %x", got)
	}
	for i := range wrapped {
		bad := bytes.Clone(wrapped)
		bad[i] ^= 1
		if _, err := k.Op(Prefix+"unwrap", []any{kek, bad}); err == nil {
			t.Errorf("byte %d may be changed", i)
		}
	}
	for _, n := range []int{0, 8, 15, 17} {
		if _, err := k.Op(Prefix+"wrap", []any{kek, make([]byte, n)}); err == nil {
			t.Errorf("%d bytes can be wrapped", n)
		}
	}
}

// TestShortTags compares the tags that package cipher does not know with the full one.
func TestShortTags(t *testing.T) {
	var k Keys
	h := must(t, &k, "import", "secret", "raw", make([]byte, 16))
	iv, extra, data := make([]byte, 12), []byte("extra"), []byte("some data of no special length")
	full := must(t, &k, "encrypt", h, "AES-GCM", data, iv, extra, 128.0).([]byte)
	for _, bits := range []float64{32, 64, 96, 104, 112, 120, 128} {
		sealed := must(t, &k, "encrypt", h, "AES-GCM", data, iv, extra, bits).([]byte)
		if !bytes.Equal(sealed, full[:len(data)+int(bits)/8]) {
			t.Errorf("%v bits: %x", bits, sealed)
		}
		if got := must(t, &k, "decrypt", h, "AES-GCM", sealed, iv, extra, bits).([]byte); !bytes.Equal(got, data) {
			t.Errorf("%v bits: opened to %q", bits, got)
		}
		sealed[len(sealed)-1] ^= 1
		if _, err := k.Op(Prefix+"decrypt", []any{h, "AES-GCM", sealed, iv, extra, bits}); err == nil {
			t.Errorf("%v bits: a wrong tag is taken", bits)
		}
	}
}

// TestPSSWithoutSalt signs with our own encoding and has package crypto/rsa find the salt's length.
func TestPSSWithoutSalt(t *testing.T) {
	var k Keys
	private := must(t, &k, "generate", "rsa", 1031.0, []byte{1, 0, 1}) // a modulus whose length is no multiple of 8
	public := must(t, &k, "public", private)
	data := []byte("data")
	signature := must(t, &k, "sign", private, "RSA-PSS", "SHA-256", data, 0.0, []byte{})
	if must(t, &k, "verify", public, "RSA-PSS", "SHA-256", data, signature, 0.0, []byte{}) != 1.0 {
		t.Error("the signature is not verified")
	}
	for _, salt := range []float64{-1, -2, 1, 32, 1e9} {
		if must(t, &k, "verify", public, "RSA-PSS", "SHA-256", data, signature, salt, []byte{}) != 0.0 {
			t.Errorf("it is verified with a salt of %v bytes", salt)
		}
	}
	if must(t, &k, "verify", public, "RSA-PSS", "SHA-256", []byte("other"), signature, 0.0, []byte{}) != 0.0 {
		t.Error("it is verified for other data")
	}
	salted := must(t, &k, "sign", private, "RSA-PSS", "SHA-256", data, 32.0, []byte{})
	if must(t, &k, "verify", public, "RSA-PSS", "SHA-256", data, salted, 0.0, []byte{}) != 0.0 {
		t.Error("a signature with a salt passes for one without")
	}
}

// TestBounds asks for more than one operation may do.
func TestBounds(t *testing.T) {
	var k Keys
	h := must(t, &k, "import", "secret", "raw", []byte("x"))
	for _, c := range []struct {
		name string
		op   string
		args []any
	}{
		{"iterations", "pbkdf2", []any{h, "SHA-1", []byte{}, float64(maxIterations + 1), 20.0}},
		{"iterations of all blocks", "pbkdf2", []any{h, "SHA-1", []byte{}, float64(maxIterations), 21.0}},
		{"length", "hkdf", []any{h, "SHA-1", []byte{}, []byte{}, 255*20 + 1.0}},
		{"modulus", "generate", []any{"rsa", float64(maxModulusGenerate + 1), []byte{1, 0, 1}}},
		{"exponent", "generate", []any{"rsa", 1024.0, []byte{3}}},
		{"secret", "generate", []any{"secret", 1e15}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if v, err := k.Op(Prefix+c.op, c.args); err == nil || !strings.HasPrefix(err.Error(), "OperationError: ") {
				t.Errorf("%v, %v", v, err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("pkcs8", []byte{0x30, 0})
	f.Add("spki", []byte{0x30, 3, 2, 1, 0})
	f.Fuzz(func(t *testing.T, format string, data []byte) {
		for _, kind := range []string{"rsa", "ec", "Ed25519", "Ed448", "X25519", "X448"} {
			var k Keys
			h, err := k.Op(Prefix+"import", []any{kind, format, data, "P-256"})
			if err != nil {
				continue
			}
			if _, err := k.Op(Prefix+"export", []any{h, format}); err != nil {
				t.Errorf("a key that was read cannot be written: %v", err)
			}
		}
	})
}
