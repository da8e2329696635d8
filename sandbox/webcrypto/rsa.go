package webcrypto

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"math/big"
	"strings"
)

// exponent reads a BigInteger; 0 if it is out of range.
func exponent(b []byte) int {
	e := new(big.Int).SetBytes(b)
	if e.BitLen() > 31 {
		return 0
	}
	return int(e.Int64())
}

func exponentBytes(key *rsa.PublicKey) []byte { return big.NewInt(int64(key.E)).Bytes() }

func generateRSA(k *Keys, a *arguments) (any, error) {
	bits, e := a.number(), exponent(a.bytes())
	if a.err != nil {
		return nil, a.err
	}
	if bits < 1024 || bits > maxModulusGenerate {
		return nil, operationError("a modulus of %d bits cannot be made here: it must have 1024 to %d", bits, maxModulusGenerate)
	}
	if e != 65537 {
		return nil, operationError("the public exponent must be 65537")
	}
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return nil, operationError("%v", err)
	}
	return k.add(key)
}

func parseRSA(format string, data []byte) (any, error) {
	var key any
	var err error
	if format == "pkcs8" {
		key, err = x509.ParsePKCS8PrivateKey(data)
	} else {
		key, err = x509.ParsePKIXPublicKey(data)
	}
	if err != nil {
		return nil, dataError("cannot read the key")
	}
	switch key := key.(type) {
	case *rsa.PrivateKey:
		return key, checkModulus(&key.PublicKey)
	case *rsa.PublicKey:
		return key, checkModulus(key)
	}
	return nil, dataError("it is not an RSA key")
}

func checkModulus(key *rsa.PublicKey) error {
	if key.N.BitLen() > maxModulusImport {
		return fault("NotSupportedError", "the modulus has more than %d bits", maxModulusImport)
	}
	return nil
}

// rsaFromJWK takes n e d p q dp dq qi. Members that are computed from others are checked.
func rsaFromJWK(m [][]byte) (any, error) {
	public := rsa.PublicKey{N: new(big.Int).SetBytes(m[0]), E: exponent(m[1])}
	if public.N.Sign() == 0 || public.E < 3 {
		return nil, dataError("the JSON Web Key has a wrong modulus or exponent")
	}
	if err := checkModulus(&public); err != nil {
		return nil, err
	}
	if m[2] == nil {
		return &public, nil
	}
	if m[3] == nil || m[4] == nil {
		return nil, fault("NotSupportedError", "the JSON Web Key lacks the prime factors")
	}
	key := &rsa.PrivateKey{PublicKey: public, D: new(big.Int).SetBytes(m[2]), Primes: []*big.Int{new(big.Int).SetBytes(m[3]), new(big.Int).SetBytes(m[4])}}
	if err := key.Validate(); err != nil {
		return nil, dataError("the JSON Web Key is not a consistent RSA key")
	}
	key.Precompute()
	for i, v := range []*big.Int{key.Precomputed.Dp, key.Precomputed.Dq, key.Precomputed.Qinv} {
		if m[5+i] == nil || v.Cmp(new(big.Int).SetBytes(m[5+i])) != 0 {
			return nil, dataError("the JSON Web Key is not a consistent RSA key")
		}
	}
	return key, nil
}

func rsaPublicJWK(key *rsa.PublicKey) string {
	return encode64(key.N.Bytes()) + " " + encode64(exponentBytes(key))
}

func rsaPrivateJWK(key *rsa.PrivateKey) string {
	text := []string{rsaPublicJWK(&key.PublicKey)}
	p := key.Precomputed
	for _, v := range []*big.Int{key.D, key.Primes[0], key.Primes[1], p.Dp, p.Dq, p.Qinv} {
		text = append(text, encode64(v.Bytes()))
	}
	return strings.Join(text, " ")
}

func marshalRSA(key any) (any, error) {
	var b []byte
	var err error
	if private, ok := key.(*rsa.PrivateKey); ok {
		b, err = x509.MarshalPKCS8PrivateKey(private)
	} else {
		b, err = x509.MarshalPKIXPublicKey(key)
	}
	if err != nil {
		return nil, operationError("%v", err)
	}
	return b, nil
}

func signRSA(key *rsa.PrivateKey, scheme string, h crypto.Hash, data []byte, salt int) (any, error) {
	var b []byte
	var err error
	switch scheme {
	case "RSASSA-PKCS1-v1_5":
		b, err = rsa.SignPKCS1v15(nil, key, h, sum(h, data))
	case "RSA-PSS":
		// A salt that does not fit must not be read as one of Go's special lengths, which are not positive.
		if salt < 0 || salt > key.Size() {
			return nil, operationError("the salt is too long for the key")
		}
		b, err = signPSS(key, h, sum(h, data), salt)
	default:
		return nil, errArguments
	}
	if err != nil {
		return nil, operationError("%v", err)
	}
	return b, nil
}

func signPSS(key *rsa.PrivateKey, h crypto.Hash, digest []byte, salt int) ([]byte, error) {
	if salt == 0 {
		return signPSSWithoutSalt(key, h, digest)
	}
	return rsa.SignPSS(rand.Reader, key, h, digest, &rsa.PSSOptions{SaltLength: salt})
}

func verifyRSA(key *rsa.PublicKey, scheme string, h crypto.Hash, data, signature []byte, salt int) (bool, error) {
	switch scheme {
	case "RSASSA-PKCS1-v1_5":
		return rsa.VerifyPKCS1v15(key, h, sum(h, data), signature) == nil, nil
	case "RSA-PSS":
		if salt < 0 || salt > key.Size() {
			return false, nil
		}
		if salt == 0 {
			return verifyPSSWithoutSalt(key, h, sum(h, data), signature), nil
		}
		return rsa.VerifyPSS(key, h, sum(h, data), signature, &rsa.PSSOptions{SaltLength: salt}) == nil, nil
	}
	return false, errArguments
}
