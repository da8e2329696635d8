package webcrypto

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/hkdf"
	"crypto/pbkdf2"
	"hash"
)

// maxDerived is how many bytes an operation derives at most.
const maxDerived = 1 << 20

// agree(private handle, public handle) → the shared secret of ECDH or X25519
func agree(k *Keys, a *arguments) (any, error) {
	private, public := k.keys[a.handle()], k.keys[a.handle()]
	if a.err != nil {
		return nil, a.err
	}
	p, ok1 := asECDH(private)
	q, ok2 := asECDHPublic(public)
	if !ok1 || !ok2 {
		return nil, errArguments
	}
	b, err := p.ECDH(q) // refuses an all-zero secret of X25519, as the standard does
	if err != nil {
		return nil, operationError("the keys have no shared secret")
	}
	return b, nil
}

func asECDH(key any) (*ecdh.PrivateKey, bool) {
	switch key := key.(type) {
	case *ecdh.PrivateKey:
		return key, true
	case *ecdsa.PrivateKey:
		p, err := key.ECDH()
		return p, err == nil
	}
	return nil, false
}

func asECDHPublic(key any) (*ecdh.PublicKey, bool) {
	switch key := key.(type) {
	case *ecdh.PublicKey:
		return key, true
	case *ecdsa.PublicKey:
		p, err := key.ECDH()
		return p, err == nil
	}
	return nil, false
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
