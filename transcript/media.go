package transcript

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image"
	_ "image/gif"  // of which the size is read
	_ "image/jpeg" // likewise
	_ "image/png"  // likewise
	"strings"
)

// How many tokens pictures and pages have.
const (
	// Of a picture, Anthropic counts one token for 750 pixels, after it has made the
	// longer side 1 568 pixels at the most (its guide on vision). OpenAI and Google
	// count 85 to 1 100 for one of the same size.
	tokenPixels = 750
	longestSide = 1568
	leastImage  = 85 // OpenAI's count for a picture of low detail

	// "Each page typically uses 1,500-3,000 tokens" of text, and is a picture as well
	// (Anthropic's guide on PDFs). A recorded one of a page had 1 661.
	pageTokens = 1661

	headBytes = 64 << 10 // of a file in which the size of a picture is looked for
	pdfBytes  = 8 << 20  // of a PDF in which pages are counted
)

// mediaTokens returns about how many tokens a file has, whose text is base64, a data
// URL with it, or where it is. Of a picture, only the beginning is decoded.
func mediaTokens(text string) int {
	if strings.HasPrefix(text, "data:") {
		if _, data, ok := strings.Cut(text, ";base64,"); ok {
			text = data
		}
	}
	head := decodeBase64(text, headBytes)
	switch {
	case bytes.HasPrefix(head, []byte("%PDF-")):
		return pagesOf(decodeBase64(text, pdfBytes)) * pageTokens
	case len(head) == 0:
		return fileTokens
	}
	if width, height := pixelsOf(head); width > 0 && height > 0 {
		return pictureTokens(width, height)
	}
	return fileTokens
}

// decodeBase64 returns up to n bytes of a text, as far as it is base64.
func decodeBase64(text string, n int) []byte {
	text = text[:min(len(text), base64.StdEncoding.EncodedLen(n))]
	decoded := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	k, _ := base64.StdEncoding.Decode(decoded, []byte(text)) // as far as it can be read
	return decoded[:k]
}

// pixelsOf returns the size of a picture that begins so, zeros if it is not known.
func pixelsOf(head []byte) (width, height int) {
	if len(head) >= 30 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP" {
		return webpPixels(head)
	}
	config, _, err := image.DecodeConfig(bytes.NewReader(head))
	if err != nil {
		return 0, 0
	}
	return config.Width, config.Height
}

// webpPixels reads the three headers of WebP; see RFC 9649, section 2.
func webpPixels(head []byte) (width, height int) {
	switch string(head[12:16]) {
	case "VP8 ":
		return int(binary.LittleEndian.Uint16(head[26:]) & 0x3fff), int(binary.LittleEndian.Uint16(head[28:]) & 0x3fff)
	case "VP8L":
		bits := binary.LittleEndian.Uint32(head[21:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1
	case "VP8X":
		return 1 + int(head[24]) + int(head[25])<<8 + int(head[26])<<16, 1 + int(head[27]) + int(head[28])<<8 + int(head[29])<<16
	}
	return 0, 0
}

// pictureTokens returns how many tokens a picture of a size has.
func pictureTokens(width, height int) int {
	w, h := float64(width), float64(height)
	if longest := max(w, h); longest > longestSide {
		w, h = w*longestSide/longest, h*longestSide/longest
	}
	return min(max(int(w*h)/tokenPixels, leastImage), 1600) // Anthropic's greatest
}

// pagesOf returns how many pages a PDF has, at least one. Where the objects with the
// pages are compressed, they are not counted.
func pagesOf(pdf []byte) int {
	pages := 0
	for rest := pdf; ; {
		i := bytes.Index(rest, []byte("/Type"))
		if i < 0 {
			return max(pages, 1)
		}
		rest = bytes.TrimLeft(rest[i+len("/Type"):], " \r\n\t")
		if bytes.HasPrefix(rest, []byte("/Page")) && !bytes.HasPrefix(rest, []byte("/Pages")) {
			pages++
		}
	}
}
