package webcrypto

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"encoding/hex"
	"fmt"
)

// weigh estimates what a key takes.
func weigh(key any) int {
	switch key := key.(type) {
	case secret:
		return keyOverhead + len(key)
	case *rsa.PrivateKey:
		return keyOverhead + 16*key.Size()
	case *rsa.PublicKey:
		return keyOverhead + 4*key.Size()
	}
	return 4 * keyOverhead
}

// generate(type, …) → handle
func generate(k *Keys, a *arguments) (any, error) {
	kind := a.text()
	switch kind {
	case "secret": // bits
		n := a.number()
		if a.err != nil || n <= 0 || n > maxKeyBytes {
			return nil, operationError("the length of the key is out of range")
		}
		b := make([]byte, (n+7)/8)
		rand.Read(b) // never fails
		if n%8 != 0 {
			b[len(b)-1] &= 0xff << (8 - n%8)
		}
		return k.add(secret(b))
	case "rsa": // bits, exponent
		return generateRSA(k, a)
	case "ec": // curve
		c := a.curve()
		if a.err != nil {
			return nil, a.err
		}
		key, err := ecdsa.GenerateKey(c.curve, rand.Reader)
		if err != nil {
			return nil, operationError("%v", err)
		}
		return k.add(key)
	}
	if c, ok := okpCurves[kind]; ok {
		return k.add(c.generate())
	}
	return nil, errArguments
}

// public(handle of a private key) → handle of its public key
func public(k *Keys, a *arguments) (any, error) {
	switch key := k.keys[a.handle()].(type) {
	case *rsa.PrivateKey:
		return k.add(&key.PublicKey)
	case *ecdsa.PrivateKey:
		return k.add(&key.PublicKey)
	case privateOKP:
		return k.add(key.publicOKP)
	}
	return nil, errArguments
}

// describe(handle) → of an RSA key "bits exponent", the exponent as hexadecimal bytes; of a secret its length in bits
func describe(k *Keys, a *arguments) (any, error) {
	switch key := k.keys[a.handle()].(type) {
	case *rsa.PrivateKey:
		return describeRSA(&key.PublicKey), nil
	case *rsa.PublicKey:
		return describeRSA(key), nil
	case secret:
		return float64(8 * len(key)), nil
	}
	return nil, errArguments
}

func describeRSA(key *rsa.PublicKey) string {
	return fmt.Sprintf("%d %s", key.N.BitLen(), hex.EncodeToString(exponentBytes(key)))
}

// importKey(type, format, data, curve) → handle. format is raw, pkcs8 or spki.
func importKey(k *Keys, a *arguments) (any, error) {
	kind, format, data := a.text(), a.text(), a.bytes()
	if a.err != nil {
		return nil, a.err
	}
	var key any
	var err error
	switch kind {
	case "secret":
		key = secret(append([]byte(nil), data...))
	case "rsa":
		key, err = parseRSA(format, data)
	case "ec":
		c := a.curve()
		if a.err != nil {
			return nil, a.err
		}
		key, err = c.parse(format, data)
	default:
		c, ok := okpCurves[kind]
		if !ok {
			return nil, errArguments
		}
		key, err = c.parse(format, data)
	}
	if err != nil {
		return nil, err
	}
	return k.add(key)
}

// importJWK(type, curve, members…) → handle
func importJWK(k *Keys, a *arguments) (any, error) {
	kind, curve := a.text(), a.optional()
	members := make([][]byte, len(a.values))
	for i, v := range a.values {
		if v == nil {
			continue
		}
		s, ok := v.(string)
		if !ok {
			return nil, errArguments
		}
		b, err := decode64(s)
		if err != nil {
			return nil, err
		}
		members[i] = b
	}
	var key any
	err := errArguments
	switch {
	case kind == "secret" && len(members) == 1:
		key, err = secret(members[0]), nil
	case kind == "rsa" && len(members) == 8:
		key, err = rsaFromJWK(members)
	case kind == "ec" && len(members) == 3 && curves[curve].curve != nil:
		key, err = curves[curve].fromJWK(members[0], members[1], members[2])
	case okpCurves[kind] != nil && len(members) == 2:
		key, err = okpCurves[kind].fromJWK(members[0], members[1])
	}
	if err != nil {
		return nil, err
	}
	return k.add(key)
}

// export(handle, format) → bytes
func export(k *Keys, a *arguments) (any, error) {
	key, format := k.keys[a.handle()], a.text()
	if a.err != nil {
		return nil, a.err
	}
	switch key := key.(type) {
	case secret:
		return []byte(key), nil
	case *rsa.PrivateKey, *rsa.PublicKey:
		return marshalRSA(key)
	case *ecdsa.PrivateKey, *ecdsa.PublicKey:
		return marshalEC(key, format)
	case privateOKP:
		return key.marshal()
	case publicOKP:
		return key.marshal(format)
	}
	return nil, errArguments
}

// exportJWK(handle) → the members in base64url, a space between: k; n e d p q dp dq qi; x y d; x d
func exportJWK(k *Keys, a *arguments) (any, error) {
	switch key := k.keys[a.handle()].(type) {
	case secret:
		return encode64(key), nil
	case *rsa.PrivateKey:
		return rsaPrivateJWK(key), nil
	case *rsa.PublicKey:
		return rsaPublicJWK(key), nil
	case *ecdsa.PrivateKey:
		return ecPrivateJWK(key)
	case *ecdsa.PublicKey:
		return ecPublicJWK(key)
	case privateOKP:
		return encode64(key.bytes) + " " + encode64(key.secret), nil
	case publicOKP:
		return encode64(key.bytes), nil
	}
	return nil, errArguments
}
