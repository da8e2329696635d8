package webcrypto

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"encoding/hex"
	"math/big"
)

// sign(handle, scheme, hash, data, salt length) → signature. The hash is absent for Ed25519.
func sign(k *Keys, a *arguments) (any, error) {
	key, scheme := k.keys[a.handle()], a.text()
	h, data, salt := a.optionalHash(), a.bytes(), a.number()
	if a.err != nil {
		return nil, a.err
	}
	switch key := key.(type) {
	case secret:
		return mac(h, key, data), nil
	case *rsa.PrivateKey:
		return signRSA(key, scheme, h, data, salt)
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, key, sum(h, data))
		if err != nil {
			return nil, operationError("%v", err)
		}
		size := (key.Curve.Params().BitSize + 7) / 8
		b := make([]byte, 2*size)
		r.FillBytes(b[:size])
		s.FillBytes(b[size:])
		return b, nil
	case ed25519.PrivateKey:
		return ed25519.Sign(key, data), nil
	}
	return nil, errArguments
}

func (a *arguments) optionalHash() crypto.Hash {
	if len(a.values) > 0 && a.values[0] == nil {
		a.values = a.values[1:]
		return 0
	}
	return a.hash()
}

// verify(handle, scheme, hash, data, signature, salt length) → 1 or 0
func verify(k *Keys, a *arguments) (any, error) {
	key, scheme := k.keys[a.handle()], a.text()
	h, data, signature, salt := a.optionalHash(), a.bytes(), a.bytes(), a.number()
	if a.err != nil {
		return nil, a.err
	}
	ok, err := false, error(nil)
	switch key := key.(type) {
	case secret:
		ok = hmac.Equal(mac(h, key, data), signature)
	case *rsa.PublicKey:
		ok, err = verifyRSA(key, scheme, h, data, signature, salt)
	case *ecdsa.PublicKey:
		ok = verifyECDSA(key, sum(h, data), signature)
	case ed25519.PublicKey:
		ok = len(signature) == ed25519.SignatureSize && !smallOrder(key) && !smallOrder(signature[:32]) && ed25519.Verify(key, data, signature)
	default:
		err = errArguments
	}
	if err != nil {
		return nil, err
	}
	if ok {
		return 1.0, nil
	}
	return 0.0, nil
}

func verifyECDSA(key *ecdsa.PublicKey, digest, signature []byte) bool {
	size := (key.Curve.Params().BitSize + 7) / 8
	if len(signature) != 2*size {
		return false
	}
	return ecdsa.Verify(key, digest, new(big.Int).SetBytes(signature[:size]), new(big.Int).SetBytes(signature[size:]))
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
