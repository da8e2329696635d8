package webcrypto

import (
	"crypto/ecdh"
	"crypto/ed25519"
	"encoding/hex"
	"slices"
)

// Ed25519 and X25519, with Go's standard library.

func publicEd25519(secret []byte) []byte {
	return ed25519.NewKeyFromSeed(secret).Public().(ed25519.PublicKey)
}

func signEd25519(key privateOKP, data, _ []byte) []byte {
	return ed25519.Sign(slices.Concat(key.secret, key.bytes), data)
}

func verifyEd25519(public, data, signature, _ []byte) bool {
	return len(signature) == ed25519.SignatureSize && !smallOrder(public) && !smallOrder(signature[:32]) && ed25519.Verify(public, data, signature)
}

// smallOrders are the encodings of the points of Ed25519 whose order divides 8, the sign bit clear, canonical or not:
// y = 0, 1, the two of order 8, and p-1, p, p+1.
var smallOrders = func() map[[32]byte]bool {
	all := map[[32]byte]bool{}
	for _, text := range []string{
		"0000000000000000000000000000000000000000000000000000000000000000",
		"0100000000000000000000000000000000000000000000000000000000000000",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	} {
		b, err := hex.DecodeString(text)
		if err != nil {
			panic(err)
		}
		all[[32]byte(b)] = true
	}
	return all
}()

// smallOrder tells whether a point of Ed25519 is one that the standard refuses in verification ("Ed25519", verify).
func smallOrder(point []byte) bool {
	p := [32]byte(point)
	p[31] &= 0x7f
	return smallOrders[p]
}

func publicX25519(secret []byte) []byte {
	key, _ := ecdh.X25519().NewPrivateKey(secret) // fails for another size only
	return key.PublicKey().Bytes()
}

func agreeX25519(secret, public []byte) []byte {
	private, _ := ecdh.X25519().NewPrivateKey(secret)
	other, _ := ecdh.X25519().NewPublicKey(public)
	b, err := private.ECDH(other)
	if err != nil {
		return nil
	}
	return b
}
