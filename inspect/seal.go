package inspect

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
)

var errForm = &httpError{http.StatusConflict, "This form is of an earlier process, or was changed. Begin again."}

// seal returns a value for a form or an address that says nothing to readers:
// what was typed may contain a secret, and a page must not repeat it. Only this
// Handler opens it, for the same purpose and user, so that an action does what
// its preview has shown.
func (h *Handler) seal(purpose, user string, v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // of strings and numbers only
	}
	aead := h.aead()
	nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+len(data)+aead.Overhead())
	rand.Read(nonce) // which never fails
	return base64.RawURLEncoding.EncodeToString(aead.Seal(nonce, nonce, data, []byte(purpose+"\x00"+user)))
}

// unseal reports whether text was sealed for the purpose and user, and decodes it.
func (h *Handler) unseal(purpose, user, text string, v any) bool {
	data, err := base64.RawURLEncoding.DecodeString(text)
	aead := h.aead()
	if err != nil || len(data) < aead.NonceSize() {
		return false
	}
	n := aead.NonceSize()
	plain, err := aead.Open(nil, data[:n], data[n:], []byte(purpose+"\x00"+user))
	return err == nil && json.Unmarshal(plain, v) == nil
}

func (h *Handler) aead() cipher.AEAD {
	mac := hmac.New(sha256.New, h.key[:])
	mac.Write([]byte("seal of forms"))
	block, err := aes.NewCipher(mac.Sum(nil))
	if err != nil {
		panic(err) // the key has 32 bytes
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // the block has 16 bytes
	}
	return aead
}
