package webcrypto

import (
	"bytes"
	"crypto/sha3"
	"slices"

	"github.com/cloudflare/circl/dh/x448"
	"github.com/cloudflare/circl/ecc/goldilocks"
	"github.com/cloudflare/circl/sign/ed448"
)

// Ed448 and X448 (https://wicg.github.io/webcrypto-secure-curves/), with circl: Go's standard library has neither.

func publicEd448(secret []byte) []byte {
	return ed448.NewKeyFromSeed(secret).Public().(ed448.PublicKey)
}

func signEd448(key privateOKP, data, context []byte) []byte {
	return ed448.Sign(slices.Concat(key.secret, key.bytes), data, string(context))
}

// verifyEd448 refuses keys and points R of small order and then holds the signature to [S]B = R + [k]A, as the draft asks
// ("Ed448", verify). ed448.Verify answers another question: it takes no notice of what a key has outside the subgroup of
// prime order (circl 1.6.5).
func verifyEd448(public, data, signature, context []byte) bool {
	if len(signature) != ed448.SignatureSize {
		return false
	}
	r, encodedS := signature[:ed448.PublicKeySize], signature[ed448.PublicKeySize:]
	pointA, errA := goldilocks.FromBytes(public)
	pointR, errR := goldilocks.FromBytes(r)
	if errA != nil || errR != nil || smallOrder448(pointA) || smallOrder448(pointR) {
		return false
	}
	var s, k goldilocks.Scalar
	s.FromBytes(encodedS)
	if !bytes.Equal(append(s[:], 0), encodedS) { // not reduced, as RFC 8032, 5.2.7 wants it
		return false
	}
	k.FromBytes(challengeEd448(r, public, data, context))
	sum := multiply448(&k, pointA)
	sum.Add(pointR)
	return goldilocks.Curve{}.ScalarBaseMult(&s).IsEqual(sum)
}

// challengeEd448 is the hash that makes k (RFC 8032, 5.2.7).
func challengeEd448(r, public, data, context []byte) []byte {
	h := sha3.NewSHAKE256() // its methods never fail
	h.Write([]byte("SigEd448"))
	h.Write([]byte{0, byte(len(context))})
	for _, b := range [][]byte{context, r, public, data} {
		h.Write(b)
	}
	digest := make([]byte, 2*ed448.PublicKeySize)
	h.Read(digest)
	return digest
}

// smallOrder448 tells whether [4]p is the neutral element: the curve's cofactor is 4.
func smallOrder448(p *goldilocks.Point) bool {
	q := *p
	q.Double()
	q.Double()
	return q.IsIdentity()
}

// multiply448 is [k]p for every point of the curve, which goldilocks.Curve.ScalarMult is only in the subgroup of prime
// order. The time depends on k: it is for public numbers.
func multiply448(k *goldilocks.Scalar, p *goldilocks.Point) *goldilocks.Point {
	q := goldilocks.Curve{}.Identity()
	for i := 8*len(k) - 1; i >= 0; i-- {
		q.Double()
		if k[i/8]>>(i%8)&1 == 1 {
			q.Add(p)
		}
	}
	return q
}

func publicX448(secret []byte) []byte {
	var public x448.Key
	private := x448.Key(secret)
	x448.KeyGen(&public, &private)
	return public[:]
}

func agreeX448(secret, public []byte) []byte {
	var shared x448.Key
	private, other := x448.Key(secret), x448.Key(public)
	if !x448.Shared(&shared, &private, &other) { // it is all zeros for points of small order, and for no others
		return nil
	}
	return shared[:]
}
