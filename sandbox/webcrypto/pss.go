package webcrypto

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/subtle"
	"math/big"
)

// RSASSA-PSS with an empty salt (RFC 8017, 8.1 and 9.1), which package crypto/rsa cannot do: a length of 0 means
// something else to it (Go 1.26).

var padding8 = make([]byte, 8)

// encodePSS is EMSA-PSS-ENCODE with an empty salt; nil if the key is too short.
func encodePSS(bits int, h crypto.Hash, digest []byte) []byte {
	size := (bits + 7) / 8
	if size < h.Size()+2 {
		return nil
	}
	message := sum(h, append(append([]byte(nil), padding8...), digest...))
	em := make([]byte, size)
	db := em[:size-h.Size()-1]
	db[len(db)-1] = 1
	mask(db, h, message)
	db[0] &= 0xff >> (8*size - bits)
	copy(em[len(db):], message)
	em[size-1] = 0xbc
	return em
}

// mask is MGF1 (RFC 8017, B.2.1), combined with db.
func mask(db []byte, h crypto.Hash, seed []byte) {
	for i, counter := 0, byte(0); i < len(db); counter++ { // a modulus has few blocks
		block := sum(h, append(append([]byte(nil), seed...), 0, 0, 0, counter))
		i += subtle.XORBytes(db[i:], db[i:], block)
	}
}

func signPSSWithoutSalt(key *rsa.PrivateKey, h crypto.Hash, digest []byte) ([]byte, error) {
	em := encodePSS(key.N.BitLen()-1, h, digest)
	if em == nil {
		return nil, rsa.ErrMessageTooLong
	}
	// The exponentiation is blinded, since package math/big does not take the same time for all numbers.
	e := big.NewInt(int64(key.E))
	for {
		r, err := rand.Int(rand.Reader, key.N)
		if err != nil {
			return nil, err
		}
		inverse := new(big.Int).ModInverse(r, key.N)
		if inverse == nil {
			continue
		}
		m := new(big.Int).SetBytes(em)
		m.Mul(m, new(big.Int).Exp(r, e, key.N)).Mod(m, key.N)
		m.Exp(m, key.D, key.N)
		m.Mul(m, inverse).Mod(m, key.N)
		return m.FillBytes(make([]byte, key.Size())), nil
	}
}

func verifyPSSWithoutSalt(key *rsa.PublicKey, h crypto.Hash, digest, signature []byte) bool {
	s := new(big.Int).SetBytes(signature)
	want := encodePSS(key.N.BitLen()-1, h, digest)
	if want == nil || len(signature) != key.Size() || s.Cmp(key.N) >= 0 {
		return false
	}
	m := s.Exp(s, big.NewInt(int64(key.E)), key.N)
	return m.Cmp(new(big.Int).SetBytes(want)) == 0
}
