// A whole receiver of Inkpad's webhooks, for Go 1.19 or newer, without any module.
//
//	WEBHOOK_SECRET=whsec_… go run receiver.go
//
// Each event is stored before the response and handled afterwards, so that none is lost when this program is killed,
// and none is handled again when it comes twice. A folder does for that; in your database it is one statement:
//
//	insert into webhook_events (id, body) values ($1, $2) on conflict do nothing
package main

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	bodyLimit = 1 << 20
	tryAgain  = time.Minute
)

var (
	secret  = os.Getenv("WEBHOOK_SECRET")
	folder  = setting("EVENTS_DIR", "events")
	address = setting("HOST", "127.0.0.1") + ":" + setting("PORT", "8787")
	// It becomes the name of a file.
	fileName = regexp.MustCompile(`^\w{1,64}$`)
	waiting  = make(chan string, 10_000)
)

type Event struct {
	ID   string          `json:"id"`
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

// Your code. If it returns an error it is called again a minute later, so it has to be able to run twice.
func handle(event Event) error {
	fmt.Println("handled", event.ID, event.Type)
	return nil
}

// Takes a secret (whsec_…) or a public key (whpk_…).
func verify(secret, id, timestamp, signatures string, body []byte) bool {
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	kind, encodedKey, _ := strings.Cut(secret, "_")
	key, err := base64.StdEncoding.DecodeString(encodedKey)
	if err != nil || kind == "whpk" && len(key) != ed25519.PublicKeySize {
		return false
	}
	signed := append([]byte(id+"."+timestamp+"."), body...)
	mac := hmac.New(sha256.New, key)
	mac.Write(signed)
	expected := mac.Sum(nil)
	for _, one := range strings.Fields(signatures) {
		version, encoded, _ := strings.Cut(one, ",")
		signature, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			continue
		}
		if kind == "whpk" && version == "v1a" && ed25519.Verify(key, signed, signature) {
			return true
		}
		if kind == "whsec" && version == "v1" && hmac.Equal(expected, signature) {
			return true
		}
	}
	return false
}

func receive(response http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodPost {
		response.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	// The signature is over these bytes: parse nothing before it is verified.
	body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, bodyLimit))
	if err != nil {
		response.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	get := request.Header.Get
	id := get("webhook-id")
	if !verify(secret, id, get("webhook-timestamp"), get("webhook-signature"), body) {
		response.WriteHeader(http.StatusUnauthorized)
		return
	}
	if !fileName.MatchString(id) {
		response.WriteHeader(http.StatusBadRequest)
		return
	}
	isNew, err := store(id, body)
	if err != nil {
		log.Print(err)
		// Inkpad tries again.
		response.WriteHeader(http.StatusInternalServerError)
		return
	}
	if isNew {
		go func() { waiting <- id }()
	}
	response.WriteHeader(http.StatusNoContent)
}

// False if the event is there already: this is a duplicate.
func store(id string, body []byte) (bool, error) {
	draft, err := os.CreateTemp(folder, id+".draft-")
	if err != nil {
		return false, err
	}
	defer os.Remove(draft.Name())
	_, err = draft.Write(body)
	for _, next := range []func() error{draft.Sync, draft.Close} {
		if failed := next(); err == nil {
			err = failed
		}
	}
	if err != nil {
		return false, err
	}
	// The file has this name only once it is whole, and the first one keeps it.
	err = os.Link(draft.Name(), filepath.Join(folder, id+".json"))
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// One after the other.
func work() {
	for id := range waiting {
		if err := workOn(id); err != nil {
			log.Printf("%s will be tried again: %v", id, err)
			time.AfterFunc(tryAgain, func() { waiting <- id })
		}
	}
}

func workOn(id string) error {
	text, err := os.ReadFile(filepath.Join(folder, id+".json"))
	if err != nil {
		return err
	}
	var event Event
	if err := json.Unmarshal(text, &event); err != nil {
		return err
	}
	if err := handle(event); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, id+".done"), nil, 0o644)
}

func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func main() {
	if secret == "" {
		log.Fatal("Set WEBHOOK_SECRET to the secret of your subscription")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		log.Fatal(err)
	}
	go work()
	left, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		log.Fatal(err)
	}
	for _, path := range left {
		id := strings.TrimSuffix(filepath.Base(path), ".json")
		if _, err := os.Stat(filepath.Join(folder, id+".done")); errors.Is(err, fs.ErrNotExist) {
			waiting <- id
		}
	}
	server := &http.Server{
		Addr:         address,
		Handler:      http.HandlerFunc(receive),
		ReadTimeout:  10 * time.Second,
		WriteTimeout: 10 * time.Second,
	}
	fmt.Println("listening on", address)
	log.Fatal(server.ListenAndServe())
}
