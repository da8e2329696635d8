package webcrypto

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"math/big"
)

// sign(handle, scheme, hash, data, salt length, context) → signature. The hash is absent for Ed25519 and Ed448, and the
// context is of Ed448 alone.
func sign(k *Keys, a *arguments) (any, error) {
	key, scheme := k.keys[a.handle()], a.text()
	h, data, salt, context := a.optionalHash(), a.bytes(), a.number(), a.bytes()
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
	case privateOKP:
		return key.sign(data, context)
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

// verify(handle, scheme, hash, data, signature, salt length, context) → 1 or 0
func verify(k *Keys, a *arguments) (any, error) {
	key, scheme := k.keys[a.handle()], a.text()
	h, data, signature, salt, context := a.optionalHash(), a.bytes(), a.bytes(), a.number(), a.bytes()
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
	case publicOKP:
		ok, err = key.verify(data, signature, context)
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
