package webcrypto

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
)

// AES Key Wrap (RFC 3394).

var wrapIV = []byte{0xa6, 0xa6, 0xa6, 0xa6, 0xa6, 0xa6, 0xa6, 0xa6}

const half = aes.BlockSize / 2

func wrapArguments(k *Keys, a *arguments) (cipher.Block, []byte, error) {
	key, data := keyOf[secret](k, a), a.bytes()
	if a.err != nil {
		return nil, nil, a.err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, nil, operationError("%v", err)
	}
	return block, data, nil
}

// wrap(handle, data) → bytes
func wrap(k *Keys, a *arguments) (any, error) {
	block, data, err := wrapArguments(k, a)
	if err != nil {
		return nil, err
	}
	if len(data)%half != 0 || len(data) < 2*half {
		return nil, operationError("AES-KW wraps keys of two or more whole units of 8 bytes")
	}
	out := append(append(make([]byte, 0, half+len(data)), wrapIV...), data...)
	b := make([]byte, aes.BlockSize)
	copy(b, wrapIV)
	t := uint64(0)
	for range 6 {
		for i := half; i < len(out); i += half {
			t++
			copy(b[half:], out[i:])
			block.Encrypt(b, b)
			binary.BigEndian.PutUint64(b, binary.BigEndian.Uint64(b)^t)
			copy(out[i:], b[half:])
		}
	}
	copy(out, b[:half])
	return out, nil
}

// unwrap(handle, data) → bytes
func unwrap(k *Keys, a *arguments) (any, error) {
	block, data, err := wrapArguments(k, a)
	if err != nil {
		return nil, err
	}
	if len(data)%half != 0 || len(data) < 3*half {
		return nil, operationError("the wrapped key is not one of AES-KW")
	}
	out := append([]byte(nil), data...)
	b := append(make([]byte, 0, aes.BlockSize), out[:half]...)[:aes.BlockSize]
	t := 6 * uint64(len(out)/half-1)
	for range 6 {
		for i := len(out) - half; i >= half; i -= half {
			binary.BigEndian.PutUint64(b, binary.BigEndian.Uint64(b)^t)
			t--
			copy(b[half:], out[i:])
			block.Decrypt(b, b)
			copy(out[i:], b[half:])
		}
	}
	if subtle.ConstantTimeCompare(b[:half], wrapIV) != 1 {
		return nil, operationError("the wrapped key is not authentic")
	}
	return out[half:], nil
}
