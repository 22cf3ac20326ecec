package view

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
)

// Key names what may contain a secret, or the id of a user that the reader may
// not see, in addresses and forms. Its names are those of one process.
type Key struct {
	key  [32]byte
	aead cipher.AEAD
}

func newKey() Key {
	var k Key
	rand.Read(k.key[:]) // which never fails
	mac := hmac.New(sha256.New, k.key[:])
	mac.Write([]byte("seal of forms"))
	block, err := aes.NewCipher(mac.Sum(nil))
	if err != nil {
		panic(err) // the key has 32 bytes
	}
	if k.aead, err = cipher.NewGCM(block); err != nil {
		panic(err) // the block has 16 bytes
	}
	return k
}

// Tag returns a name for an id, from which the id cannot be found.
func (k *Key) Tag(id string) string {
	mac := hmac.New(sha256.New, k.key[:])
	mac.Write([]byte(id))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// Seal returns a value for an address that says nothing to readers, which Unseal
// opens for the same purpose and user.
func (k *Key) Seal(purpose, user string, v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // of strings and numbers only
	}
	nonce := make([]byte, k.aead.NonceSize(), k.aead.NonceSize()+len(data)+k.aead.Overhead())
	rand.Read(nonce) // which never fails
	return base64.RawURLEncoding.EncodeToString(k.aead.Seal(nonce, nonce, data, []byte(purpose+"\x00"+user)))
}

// Unseal reports whether text was sealed for the purpose and user, and decodes it.
func (k *Key) Unseal(purpose, user, text string, v any) bool {
	data, err := base64.RawURLEncoding.DecodeString(text)
	n := k.aead.NonceSize()
	if err != nil || len(data) < n {
		return false
	}
	plain, err := k.aead.Open(nil, data[:n], data[n:], []byte(purpose+"\x00"+user))
	return err == nil && json.Unmarshal(plain, v) == nil
}
