// Writes vectors.json with golang.org/x/mod/sumdb, the implementation behind Go's checksum database.
// README.md in clients/verifier says how to run it.
package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type inclusion struct {
	Size  int64    `json:"size"`
	Index int64    `json:"index"`
	Proof []string `json:"proof"`
}

type consistency struct {
	Old   int64    `json:"old"`
	Size  int64    `json:"size"`
	Proof []string `json:"proof"`
}

type tree struct {
	Leaves      []string      `json:"leaves"`
	Roots       []string      `json:"roots"`
	Inclusion   []inclusion   `json:"inclusion"`
	Consistency []consistency `json:"consistency"`
}

type hashes []tlog.Hash

func (stored hashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	var read []tlog.Hash
	for _, index := range indexes {
		read = append(read, stored[index])
	}
	return read, nil
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func encoded(proof []tlog.Hash) []string {
	texts := []string{}
	for _, hash := range proof {
		texts = append(texts, base64.StdEncoding.EncodeToString(hash[:]))
	}
	return texts
}

// A tree over the leaves, its root at every size, and proofs for the sizes given.
func treeOf(leaves [][]byte, sizes []int64) tree {
	var stored hashes
	made := tree{}
	for i, leaf := range leaves {
		made.Leaves = append(made.Leaves, base64.StdEncoding.EncodeToString(leaf))
		stored = append(stored, must(tlog.StoredHashes(int64(i), leaf, stored))...)
		root := must(tlog.TreeHash(int64(i)+1, stored))
		made.Roots = append(made.Roots, base64.StdEncoding.EncodeToString(root[:]))
	}
	for _, size := range sizes {
		for _, index := range sizes {
			if index < size {
				proof := must(tlog.ProveRecord(size, index, stored))
				made.Inclusion = append(made.Inclusion, inclusion{size, index, encoded(proof)})
			}
			if index >= 1 && index <= size {
				proof := must(tlog.ProveTree(size, index, stored))
				made.Consistency = append(made.Consistency, consistency{index, size, encoded(proof)})
			}
		}
	}
	return made
}

// Canonical as long as it holds plain ASCII and whole numbers: Go sorts the members of maps.
func canonical(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err)
	}
	return string(bytes.TrimRight(text.Bytes(), "\n"))
}

func main() {
	// The eight leaves of the tests of certificate-transparency-go and Trillian.
	var known [][]byte
	for _, text := range []string{
		"", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f",
	} {
		known = append(known, must(hex.DecodeString(text)))
	}
	var many [][]byte
	for i := range 700 {
		many = append(many, []byte(fmt.Sprintf("leaf %d", i)))
	}

	stream, previous := "customer_card-12", ""
	events := []map[string]any{}
	var leaves [][]byte
	for revision := range 3 {
		event := map[string]any{
			"stream": stream, "revision": revision,
			"id":   fmt.Sprintf("0198c0de-0000-7000-8000-%012d", revision),
			"type": "StampsEarned", "version": 1,
			"data": map[string]any{"cardId": 5, "customerId": 7, "stamps": revision + 1, "personal": nil},
			"meta": map[string]any{"accountId": 1, "channel": "api", "recordedAt": "2026-11-21T10:00:00.000Z"},
		}
		before := previous
		if revision == 0 {
			before = stream
		}
		sum := sha256.Sum256([]byte(before + canonical(event)))
		previous = hex.EncodeToString(sum[:])
		event["hash"] = previous
		events = append(events, event)
		leaves = append(leaves, []byte(fmt.Sprintf("inkpad event 1\n%s\n%d\n%s\n", stream, revision, previous)))
	}
	eventTree := treeOf(leaves, []int64{0, 1, 2, 3})

	// A key for these vectors alone: RFC 8032 has the seed in its first test.
	seed := must(hex.DecodeString("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"))
	public := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	name := "shop.example/inkpad"
	verifierKey := must(note.NewEd25519VerifierKey(name, public))
	id := verifierKey[len(name)+1 : len(name)+9]
	signerKey := fmt.Sprintf("PRIVATE+KEY+%s+%s+%s", name, id,
		base64.StdEncoding.EncodeToString(append([]byte{1}, seed...)))
	signer := must(note.NewSigner(signerKey))
	text := fmt.Sprintf("%s\n%d\n%s\n", name, len(leaves), eventTree.Roots[len(leaves)-1])
	checkpoint := must(note.Sign(&note.Note{Text: text}, signer))
	other := must(note.NewSigner(must2(note.GenerateKey(nil2{}, "witness.example"))))
	witnessed := must(note.Sign(&note.Note{Text: text}, other, signer))

	written := map[string]any{
		"known": treeOf(known, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8}),
		"many":  treeOf(many, []int64{1, 2, 255, 256, 257, 511, 512, 513, 600, 700}),
		"events": map[string]any{
			"events": events, "leaves": eventTree.Leaves, "roots": eventTree.Roots, "inclusion": eventTree.Inclusion,
		},
		"note": map[string]any{
			"signer_key": signerKey, "verifier_key": verifierKey,
			"checkpoint": string(checkpoint), "witnessed": string(witnessed),
		},
	}
	file := must(os.Create("../vectors.json"))
	encoder := json.NewEncoder(file)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(written); err != nil {
		panic(err)
	}
}

// The witness's key need not be random either: the file stays the same from run to run.
type nil2 struct{}

func (nil2) Read(bytes []byte) (int, error) {
	clear(bytes)
	return len(bytes), nil
}

func must2(signer, _ string, err error) string {
	return must(signer, err)
}
