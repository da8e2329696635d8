package webcrypto

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/cloudflare/circl/ecc/goldilocks"
	"github.com/cloudflare/circl/sign/ed448"
)

// vectorsEd448 are those of RFC 8032, 7.4, with up to 64 bytes of data.
var vectorsEd448 = []struct{ name, secret, public, data, context, signature string }{
	{
		"blank",
		"6c82a562cb808d10d632be89c8513ebf6c929f34ddfa8c9f63c9960ef6e348a3528c8a3fcc2f044e39a3fc5b94492f8f032e7549a20098f95b",
		"5fd7449b59b461fd2ce787ec616ad46a1da1342485a70e1f8a0ea75d80e96778edf124769b46c7061bd6783df1e50f6cd1fa1abeafe8256180",
		"",
		"",
		"533a37f6bbe457251f023c0d88f976ae2dfb504a843e34d2074fd823d41a591f2b233f034f628281f2fd7a22ddd47d7828c59bd0a21bfd3980ff0d2028d4b18a9df63e006c5d1c2d345b925d8dc00b4104852db99ac5c7cdda8530a113a0f4dbb61149f05a7363268c71d95808ff2e652600",
	},
	{
		"1 octet",
		"c4eab05d357007c632f3dbb48489924d552b08fe0c353a0d4a1f00acda2c463afbea67c5e8d2877c5e3bc397a659949ef8021e954e0a12274e",
		"43ba28f430cdff456ae531545f7ecd0ac834a55d9358c0372bfa0c6c6798c0866aea01eb00742802b8438ea4cb82169c235160627b4c3a9480",
		"03",
		"",
		"26b8f91727bd62897af15e41eb43c377efb9c610d48f2335cb0bd0087810f4352541b143c4b981b7e18f62de8ccdf633fc1bf037ab7cd779805e0dbcc0aae1cbcee1afb2e027df36bc04dcecbf154336c19f0af7e0a6472905e799f1953d2a0ff3348ab21aa4adafd1d234441cf807c03a00",
	},
	{
		"1 octet, with a context",
		"c4eab05d357007c632f3dbb48489924d552b08fe0c353a0d4a1f00acda2c463afbea67c5e8d2877c5e3bc397a659949ef8021e954e0a12274e",
		"43ba28f430cdff456ae531545f7ecd0ac834a55d9358c0372bfa0c6c6798c0866aea01eb00742802b8438ea4cb82169c235160627b4c3a9480",
		"03",
		"666f6f",
		"d4f8f6131770dd46f40867d6fd5d5055de43541f8c5e35abbcd001b32a89f7d2151f7647f11d8ca2ae279fb842d607217fce6e042f6815ea000c85741de5c8da1144a6a1aba7f96de42505d7a7298524fda538fccbbb754f578c1cad10d54d0d5428407e85dcbc98a49155c13764e66c3c00",
	},
	{
		"11 octets",
		"cd23d24f714274e744343237b93290f511f6425f98e64459ff203e8985083ffdf60500553abc0e05cd02184bdb89c4ccd67e187951267eb328",
		"dcea9e78f35a1bf3499a831b10b86c90aac01cd84b67a0109b55a36e9328b1e365fce161d71ce7131a543ea4cb5f7e9f1d8b00696447001400",
		"0c3e544074ec63b0265e0c",
		"",
		"1f0a8888ce25e8d458a21130879b840a9089d999aaba039eaf3e3afa090a09d389dba82c4ff2ae8ac5cdfb7c55e94d5d961a29fe0109941e00b8dbdeea6d3b051068df7254c0cdc129cbe62db2dc957dbb47b51fd3f213fb8698f064774250a5028961c9bf8ffd973fe5d5c206492b140e00",
	},
	{
		"12 octets",
		"258cdd4ada32ed9c9ff54e63756ae582fb8fab2ac721f2c8e676a72768513d939f63dddb55609133f29adf86ec9929dccb52c1c5fd2ff7e21b",
		"3ba16da0c6f2cc1f30187740756f5e798d6bc5fc015d7c63cc9510ee3fd44adc24d8e968b6e46e6f94d19b945361726bd75e149ef09817f580",
		"64a65f3cdedcdd66811e2915",
		"",
		"7eeeab7c4e50fb799b418ee5e3197ff6bf15d43a14c34389b59dd1a7b1b85b4ae90438aca634bea45e3a2695f1270f07fdcdf7c62b8efeaf00b45c2c96ba457eb1a8bf075a3db28e5c24f6b923ed4ad747c3c9e03c7079efb87cb110d3a99861e72003cbae6d6b8b827e4e6c143064ff3c00",
	},
	{
		"13 octets",
		"7ef4e84544236752fbb56b8f31a23a10e42814f5f55ca037cdcc11c64c9a3b2949c1bb60700314611732a6c2fea98eebc0266a11a93970100e",
		"b3da079b0aa493a5772029f0467baebee5a8112d9d3a22532361da294f7bb3815c5dc59e176b4d9f381ca0938e13c6c07b174be65dfa578e80",
		"64a65f3cdedcdd66811e2915e7",
		"",
		"6a12066f55331b6c22acd5d5bfc5d71228fbda80ae8dec26bdd306743c5027cb4890810c162c027468675ecf645a83176c0d7323a2ccde2d80efe5a1268e8aca1d6fbc194d3f77c44986eb4ab4177919ad8bec33eb47bbb5fc6e28196fd1caf56b4e7e0ba5519234d047155ac727a1053100",
	},
	{
		"64 octets",
		"d65df341ad13e008567688baedda8e9dcdc17dc024974ea5b4227b6530e339bff21f99e68ca6968f3cca6dfe0fb9f4fab4fa135d5542ea3f01",
		"df9705f58edbab802c7f8363cfe5560ab1c6132c20a9f1dd163483a26f8ac53a39d6808bf4a1dfbd261b099bb03b3fb50906cb28bd8a081f00",
		"bd0f6a3747cd561bdddf4640a332461a4a30a12a434cd0bf40d766d9c6d458e5512204a30c17d1f50b5079631f64eb3112182da3005835461113718d1a5ef944",
		"",
		"554bc2480860b49eab8532d2a533b7d578ef473eeb58c98bb2d0e1ce488a98b18dfde9b9b90775e67f47d4a1c3482058efc9f40d2ca033a0801b63d45b3b722ef552bad3b4ccb667da350192b61c508cf7b6b5adadc2c8d9a446ef003fb05cba5f30e88e36ec2703b349ca229c2670833900",
	},
}

func TestEd448(t *testing.T) {
	for _, c := range vectorsEd448 {
		t.Run(c.name, func(t *testing.T) {
			var k Keys
			data, context, want := unhex(t, c.data), unhex(t, c.context), unhex(t, c.signature)
			private, err := k.add(privateOf(t, "Ed448", unhex(t, c.secret)))
			if err != nil {
				t.Fatal(err)
			}
			public := must(t, &k, "public", private)
			if got := must(t, &k, "export", public, "raw").([]byte); !bytes.Equal(got, unhex(t, c.public)) {
				t.Fatalf("the public key is %x", got)
			}
			signature := must(t, &k, "sign", private, "Ed448", nil, data, 0.0, context).([]byte)
			if !bytes.Equal(signature, want) {
				t.Fatalf("the signature is %x", signature)
			}
			verified := func(data, signature, context []byte) bool {
				return must(t, &k, "verify", public, "Ed448", nil, data, signature, 0.0, context) == 1.0
			}
			if !verified(data, signature, context) {
				t.Error("the signature is not verified")
			}
			if verified(append(data, 0), signature, context) || verified(data, signature, append(context, 0)) || verified(data, signature[:113], context) {
				t.Error("it is verified for other data, another context or without its end")
			}
			for i := range signature {
				bad := bytes.Clone(signature)
				bad[i] ^= 1
				if verified(data, bad, context) {
					t.Errorf("byte %d may be changed", i)
				}
			}
		})
	}
}

func privateOf(t *testing.T, kind string, secret []byte) privateOKP {
	t.Helper()
	key, err := okpCurves[kind].privateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return key.(privateOKP)
}

// TestEd448LargeScalar adds the order of the group to S, which the equation would not notice.
func TestEd448LargeScalar(t *testing.T) {
	key := privateOf(t, "Ed448", make([]byte, 57))
	signature := signEd448(key, nil, nil)
	order := goldilocks.Curve{}.Order()
	carry := 0
	for i, b := range order {
		carry += int(b) + int(signature[57+i])
		signature[57+i] = byte(carry)
		carry >>= 8
	}
	if carry != 0 {
		t.Fatal("the sum has more than 448 bits")
	}
	if verifyEd448(key.bytes, nil, signature, nil) {
		t.Error("S may be larger than the order")
	}
}

// torsionEd448 are the points of order 1, 2, 4 and 4.
var torsionEd448 = []string{
	"01" + strings.Repeat("00", 56),
	"fe" + strings.Repeat("ff", 27) + "fe" + strings.Repeat("ff", 27) + "00",
	strings.Repeat("00", 57),
	strings.Repeat("00", 56) + "80",
}

// TestEd448SmallOrder forges with keys of small order, which sign everything (R = [S]B) for some k, and signs with a point R
// of small order (S = ks), for keys with s = 5.
func TestEd448SmallOrder(t *testing.T) {
	five := goldilocks.Scalar{5}
	point, err := goldilocks.Curve{}.ScalarBaseMult(&five).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range torsionEd448 {
		small := unhex(t, text)
		for data := range byte(16) {
			forged := slices.Concat(point, five[:], []byte{0})
			if verifyEd448(small, []byte{data}, forged, nil) {
				t.Fatalf("the key %s verifies %d", text, data)
			}
			var k goldilocks.Scalar
			k.FromBytes(challengeEd448(small, point, []byte{data}, nil))
			k.Mul(&k, &five)
			if verifyEd448(point, []byte{data}, slices.Concat(small, k[:], []byte{0}), nil) {
				t.Fatalf("the point %s is taken for %d", text, data)
			}
		}
	}
}

// TestEd448MixedOrder signs for keys that have a part of order 2 or 4. Such a key is no invalid one, and whether it
// verifies depends on the data, by the equation without the cofactor.
func TestEd448MixedOrder(t *testing.T) {
	key := privateOf(t, "Ed448", bytes.Repeat([]byte{9}, 57))
	for _, text := range torsionEd448[1:] {
		torsion, err := goldilocks.FromBytes(unhex(t, text))
		if err != nil {
			t.Fatal(err)
		}
		mixed, err := goldilocks.FromBytes(key.bytes)
		if err != nil {
			t.Fatal(err)
		}
		mixed.Add(torsion)
		public, err := mixed.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		answers := map[bool]int{}
		for data := range byte(32) {
			signature := ed448.Sign(append(bytes.Clone(key.secret), public...), []byte{data}, "")
			if !ed448.Verify(public, []byte{data}, signature, "") {
				t.Fatalf("the signature for %d does not even hold with the cofactor", data)
			}
			answers[verifyEd448(public, []byte{data}, signature, nil)]++
		}
		if answers[true] == 0 || answers[false] == 0 {
			t.Errorf("torsion %s: of 32 signatures %d are verified", text, answers[true])
		}
	}
}

func TestEd448Context(t *testing.T) {
	var k Keys
	private := must(t, &k, "generate", "Ed448")
	public := must(t, &k, "public", private)
	longest := make([]byte, 255)
	signature := must(t, &k, "sign", private, "Ed448", nil, []byte{}, 0.0, longest)
	if must(t, &k, "verify", public, "Ed448", nil, []byte{}, signature, 0.0, longest) != 1.0 {
		t.Error("a context of 255 bytes is not verified")
	}
	if _, err := k.Op("sign", []any{private, "Ed448", nil, []byte{}, 0.0, make([]byte, 256)}); err != errContext {
		t.Errorf("sign with a longer one: %v", err)
	}
	if _, err := k.Op("verify", []any{public, "Ed448", nil, []byte{}, signature, 0.0, make([]byte, 256)}); err != errContext {
		t.Errorf("verify with a longer one: %v", err)
	}
}

// TestX448 is RFC 7748, 5.2 and 6.2.
func TestX448(t *testing.T) {
	for _, c := range []struct{ name, secret, public, shared string }{
		{
			"first",
			"3d262fddf9ec8e88495266fea19a34d28882acef045104d0d1aae121700a779c984c24f8cdd78fbff44943eba368f54b29259a4f1c600ad3",
			"06fce640fa3487bfda5f6cf2d5263f8aad88334cbd07437f020f08f9814dc031ddbdc38c19c6da2583fa5429db94ada18aa7a7fb4ef8a086",
			"ce3e4ff95a60dc6697da1db1d85e6afbdf79b50a2412d7546d5f239fe14fbaadeb445fc66a01b0779d98223961111e21766282f73dd96b6f",
		},
		{
			"second",
			"203d494428b8399352665ddca42f9de8fef600908e0d461cb021f8c538345dd77c3e4806e25f46d3315c44e0a5b4371282dd2c8d5be3095f",
			"0fbcc2f993cd56d3305b0b7d9e55d4c1a8fb5dbb52f8e9a1e9b6201b165d015894e56c4d3570bee52fe205e28a78b91cdfbde71ce8d157db",
			"884a02576239ff7a2f2f63b2db6a9ff37047ac13568e1e30fe63c4a7ad1b3ee3a5700df34321d62077e63633c575c1c954514e99da7c179d",
		},
		{
			"one side",
			"9a8f4925d1519f5775cf46b04b5800d4ee9ee8bae8bc5565d498c28dd9c9baf574a9419744897391006382a6f127ab1d9ac2d8c0a598726b",
			"3eb7a829b0cd20f5bcfc0b599b6feccf6da4627107bdb0d4f345b43027d8b972fc3e34fb4232a13ca706dcb57aec3dae07bdc1c67bf33609",
			"07fff4181ac6cc95ec1c16a94a0f74d12da232ce40a77552281d282bb60c0b56fd2464c335543936521c24403085d59a449a5037514a879d",
		},
		{
			"the other side",
			"1c306a7ac2a0e2e0990b294470cba339e6453772b075811d8fad0d1d6927c120bb5ee8972b0d3e21374c9c921b09d1b0366f10b65173992d",
			"9b08f7cc31b7e3e67d22d5aea121074a273bd2b83de09c63faa73d2c22c5d9bbc836647241d953d40c5b12da88120d53177f80e532c41fa0",
			"07fff4181ac6cc95ec1c16a94a0f74d12da232ce40a77552281d282bb60c0b56fd2464c335543936521c24403085d59a449a5037514a879d",
		},
		{"order 2", strings.Repeat("01", 56), strings.Repeat("00", 56), ""},
		{"order 4 of the twist", strings.Repeat("01", 56), "01" + strings.Repeat("00", 55), ""},
		{"order 4", strings.Repeat("01", 56), "fe" + strings.Repeat("ff", 27) + "fe" + strings.Repeat("ff", 27), ""},
		{"order 2, not canonical", strings.Repeat("01", 56), strings.Repeat("ff", 28) + "fe" + strings.Repeat("ff", 27), ""},
		{"order 4 of the twist, not canonical", strings.Repeat("01", 56), strings.Repeat("00", 28) + strings.Repeat("ff", 28), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var k Keys
			private, err := k.add(privateOf(t, "X448", unhex(t, c.secret)))
			if err != nil {
				t.Fatal(err)
			}
			public := must(t, &k, "import", "X448", "raw", unhex(t, c.public))
			shared, err := k.Op("agree", []any{private, public})
			if c.shared == "" {
				if err != errAgree {
					t.Errorf("they agree on %x, %v", shared, err)
				}
				return
			}
			if err != nil || !bytes.Equal(shared.([]byte), unhex(t, c.shared)) {
				t.Errorf("they agree on %x, %v", shared, err)
			}
		})
	}
}

// TestOKPForOther gives keys to operations that are not for their curve.
func TestOKPForOther(t *testing.T) {
	var k Keys
	handles := map[string]any{}
	for kind := range okpCurves {
		handles[kind] = must(t, &k, "generate", kind)
	}
	for kind, private := range handles {
		public := must(t, &k, "public", private)
		for other, key := range handles {
			_, err := k.Op("agree", []any{key, public})
			if want := kind == other && kind[0] == 'X'; (err == nil) != want {
				t.Errorf("%s and %s agree: %v", kind, other, err)
			}
		}
		if kind[0] == 'E' {
			continue
		}
		if v, err := k.Op("sign", []any{private, kind, nil, []byte{}, 0.0, []byte{}}); err != errArguments {
			t.Errorf("%s signs: %x, %v", kind, v, err)
		}
		if v, err := k.Op("verify", []any{public, kind, nil, []byte{}, []byte{}, 0.0, []byte{}}); err != errArguments {
			t.Errorf("%s verifies: %v, %v", kind, v, err)
		}
	}
}

// BenchmarkEd448 shows what the equation without the cofactor costs beside that of circl.
func BenchmarkEd448(b *testing.B) {
	key := okpCurves["Ed448"].generate()
	signature := signEd448(key, nil, nil)
	b.Run("sign", func(b *testing.B) {
		for b.Loop() {
			signEd448(key, nil, nil)
		}
	})
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			verifyEd448(key.bytes, nil, signature, nil)
		}
	})
	b.Run("circl", func(b *testing.B) {
		for b.Loop() {
			ed448.Verify(key.bytes, nil, signature, "")
		}
	})
}
