package webcrypto

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/subtle"
	"math/big"
)

// encrypt(handle, mode, data, …) → bytes; after data come: RSA-OAEP hash, label; AES-CBC iv; AES-CTR counter, bits of
// it; AES-GCM iv, additional data, bits of the tag.
func encrypt(k *Keys, a *arguments) (any, error) { return crypt(k, a, true) }

// decrypt is the inverse of encrypt.
func decrypt(k *Keys, a *arguments) (any, error) { return crypt(k, a, false) }

func crypt(k *Keys, a *arguments, forward bool) (any, error) {
	key, mode, data := k.keys[a.handle()], a.text(), a.bytes()
	if mode == "RSA-OAEP" {
		return cryptRSA(key, a, data, forward)
	}
	bytes, ok := key.(secret)
	if !ok || a.err != nil {
		return nil, errArguments
	}
	block, err := aes.NewCipher(bytes)
	if err != nil {
		return nil, operationError("%v", err)
	}
	switch mode {
	case "AES-CBC":
		return cryptCBC(block, a.bytes(), data, forward)
	case "AES-CTR":
		return cryptCTR(block, a.bytes(), a.number(), data)
	case "AES-GCM":
		iv, extra, bits := a.bytes(), a.bytes(), a.number()
		if a.err != nil {
			return nil, a.err
		}
		return cryptGCM(block, iv, extra, bits/8, data, forward)
	}
	return nil, errArguments
}

func cryptRSA(key any, a *arguments, data []byte, forward bool) (any, error) {
	h, label := a.hash(), a.bytes()
	if a.err != nil {
		return nil, a.err
	}
	var b []byte
	err := errArguments
	switch key := key.(type) {
	case *rsa.PublicKey:
		if forward {
			b, err = rsa.EncryptOAEP(h.New(), rand.Reader, key, data, label)
		}
	case *rsa.PrivateKey:
		if !forward {
			b, err = rsa.DecryptOAEP(h.New(), nil, key, data, label)
		}
	}
	if err == errArguments {
		return nil, err
	}
	if err != nil {
		return nil, operationError("%v", err)
	}
	return b, nil
}

// cryptCBC pads as PKCS #7 does (RFC 5652, 6.3).
func cryptCBC(block cipher.Block, iv, data []byte, forward bool) (any, error) {
	if len(iv) != aes.BlockSize {
		return nil, operationError("the iv must have 16 bytes")
	}
	if forward {
		pad := aes.BlockSize - len(data)%aes.BlockSize
		b := make([]byte, len(data)+pad)
		copy(b, data)
		for i := len(data); i < len(b); i++ {
			b[i] = byte(pad)
		}
		cipher.NewCBCEncrypter(block, iv).CryptBlocks(b, b)
		return b, nil
	}
	if len(data) == 0 || len(data)%aes.BlockSize != 0 {
		return nil, operationError("the data is not whole blocks")
	}
	b := make([]byte, len(data))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(b, data)
	pad := int(b[len(b)-1])
	if pad == 0 || pad > aes.BlockSize {
		return nil, operationError("the padding is wrong")
	}
	for _, c := range b[len(b)-pad:] {
		if int(c) != pad {
			return nil, operationError("the padding is wrong")
		}
	}
	return b[:len(b)-pad], nil
}

// cryptCTR counts in the last bits of the counter block only, and wraps there.
func cryptCTR(block cipher.Block, counter []byte, bits int, data []byte) (any, error) {
	if len(counter) != aes.BlockSize || bits < 1 || bits > 128 {
		return nil, operationError("the counter must have 16 bytes, and 1 to 128 bits that count")
	}
	space := new(big.Int).Lsh(big.NewInt(1), uint(bits))
	blocks := big.NewInt(int64((len(data) + aes.BlockSize - 1) / aes.BlockSize))
	if blocks.Cmp(space) > 0 {
		return nil, operationError("the data is longer than the counter can count")
	}
	value := new(big.Int).SetBytes(counter)
	low := new(big.Int).Mod(value, space)
	left := new(big.Int).Sub(space, low) // blocks before the counter wraps
	b := make([]byte, len(data))
	first := len(data)
	if left.Cmp(blocks) < 0 {
		first = int(left.Int64()) * aes.BlockSize
	}
	cipher.NewCTR(block, counter).XORKeyStream(b[:first], data[:first])
	if first < len(data) {
		wrapped := value.Sub(value, low).FillBytes(make([]byte, aes.BlockSize))
		cipher.NewCTR(block, wrapped).XORKeyStream(b[first:], data[first:])
	}
	return b, nil
}

const fullTag = 16

// cryptGCM allows the short tags that package cipher does not: they are full ones cut.
func cryptGCM(block cipher.Block, iv, extra []byte, tag int, data []byte, forward bool) (any, error) {
	if len(iv) == 0 || tag < 4 || tag > fullTag {
		return nil, operationError("the iv is empty or the length of the tag is wrong")
	}
	gcm, err := cipher.NewGCMWithNonceSize(block, len(iv))
	if err != nil {
		return nil, operationError("%v", err)
	}
	if forward {
		return gcm.Seal(nil, iv, data, extra)[:len(data)+tag], nil
	}
	if len(data) < tag {
		return nil, operationError("the data is shorter than its tag")
	}
	text, given := data[:len(data)-tag], data[len(data)-tag:]
	// The key stream is what zeros are encrypted to.
	plain := gcm.Seal(nil, iv, make([]byte, len(text)), nil)[:len(text)]
	subtle.XORBytes(plain, plain, text)
	sealed := gcm.Seal(nil, iv, plain, extra)
	if subtle.ConstantTimeCompare(sealed[len(text):len(text)+tag], given) != 1 {
		return nil, operationError("the data is not authentic")
	}
	return plain, nil
}
