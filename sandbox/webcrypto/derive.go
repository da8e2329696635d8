package webcrypto

import (
	"crypto/ecdsa"
	"crypto/hkdf"
	"crypto/pbkdf2"
	"hash"
)

// maxDerived is how many bytes an operation derives at most.
const maxDerived = 1 << 20

// agree(private handle, public handle) → the shared secret of ECDH, X25519 or X448
func agree(k *Keys, a *arguments) (any, error) {
	private, public := k.keys[a.handle()], k.keys[a.handle()]
	if a.err != nil {
		return nil, a.err
	}
	switch private := private.(type) {
	case *ecdsa.PrivateKey:
		if public, ok := public.(*ecdsa.PublicKey); ok {
			return agreeECDH(private, public)
		}
	case privateOKP:
		if public, ok := public.(publicOKP); ok {
			return private.agree(public)
		}
	}
	return nil, errArguments
}

var errAgree = operationError("the keys have no shared secret")

func agreeECDH(private *ecdsa.PrivateKey, public *ecdsa.PublicKey) (any, error) {
	p, err1 := private.ECDH()
	q, err2 := public.ECDH()
	if err1 != nil || err2 != nil {
		return nil, errAgree
	}
	b, err := p.ECDH(q)
	if err != nil {
		return nil, errAgree
	}
	return b, nil
}

// deriveHKDF(handle, hash, salt, info, bytes) → bytes
func deriveHKDF(k *Keys, a *arguments) (any, error) {
	key, h, salt, info, n := keyOf[secret](k, a), a.hash(), a.bytes(), a.bytes(), a.number()
	if a.err != nil {
		return nil, a.err
	}
	if n < 0 || n > 255*h.Size() {
		return nil, operationError("the length is more than HKDF can derive")
	}
	if n == 0 {
		return []byte{}, nil
	}
	b, err := hkdf.Key(func() hash.Hash { return h.New() }, key, salt, string(info), n)
	if err != nil {
		return nil, operationError("%v", err)
	}
	return b, nil
}

// derivePBKDF2(handle, hash, salt, iterations, bytes) → bytes
func derivePBKDF2(k *Keys, a *arguments) (any, error) {
	key, h, salt, iterations, n := keyOf[secret](k, a), a.hash(), a.bytes(), a.number(), a.number()
	if a.err != nil {
		return nil, a.err
	}
	blocks := (n + h.Size() - 1) / h.Size()
	if n < 0 || n > maxDerived || iterations <= 0 || iterations*max(blocks, 1) > maxIterations {
		return nil, operationError("the iterations must be 1 to %d in all", maxIterations)
	}
	if n == 0 {
		return []byte{}, nil
	}
	b, err := pbkdf2.Key(func() hash.Hash { return h.New() }, string(key), salt, iterations, n)
	if err != nil {
		return nil, operationError("%v", err)
	}
	return b, nil
}
