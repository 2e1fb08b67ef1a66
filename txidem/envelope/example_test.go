package envelope_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/txidem/txidem-go/txidem/envelope"
)

func ExampleDecode() {
	e, err := envelope.Decode([]byte(`{
		"job": "urn:babel:orders:created",
		"trace_id": "7b3f9c2a-e41d-4f88-9b2a-1c0d5e6f7a8b",
		"data": {"order_id": 1042},
		"meta": {"id": "f1e2d3c4", "queue": "orders", "lang": "php", "schema_version": 1, "created_at": 1749132727000},
		"attempts": 0
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Job, e.ID(), string(e.Data))
	// Output: urn:babel:orders:created f1e2d3c4 {"order_id": 1042}
}

func ExampleDecode_refused() {
	_, err := envelope.Decode([]byte(`{"job":"urn:babel:orders:created","meta":{"schema_version":1,"id":"a","ID":"b"}}`))
	var refusal *envelope.Error
	fmt.Println(errors.Is(err, envelope.ErrAmbiguous), errors.As(err, &refusal) && refusal.Field == "meta.ID")
	// Output: true true
}

func ExampleEncode() {
	body, err := envelope.Encode(envelope.Envelope{
		Job:  "urn:babel:orders:created",
		Data: []byte(`{"order_id": 1042}`),
		Meta: envelope.Meta{ID: "f1e2d3c4", Queue: "orders", Lang: "go", SchemaVersion: envelope.SchemaVersion},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var indented bytes.Buffer
	_ = json.Indent(&indented, body, "", "  ")
	fmt.Println(indented.String())
	// Output:
	// {
	//   "job": "urn:babel:orders:created",
	//   "trace_id": "",
	//   "data": {
	//     "order_id": 1042
	//   },
	//   "meta": {
	//     "id": "f1e2d3c4",
	//     "queue": "orders",
	//     "lang": "go",
	//     "schema_version": 1,
	//     "created_at": 0
	//   },
	//   "attempts": 0
	// }
}

// A retry sends the message on with its attempts counted up, and with what newer producers have put into it.
func ExampleEncode_retry() {
	e, err := envelope.Decode([]byte(`{"job":"u","priority":7,"meta":{"id":"a","schema_version":1,"tenant":"x"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	e.Attempts++
	body, err := envelope.Encode(e)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, text := range []string{`"attempts":1`, `"priority":7`, `"tenant":"x"`} {
		fmt.Println(bytes.Contains(body, []byte(text)))
	}
	// Output:
	// true
	// true
	// true
}

// A bridge parks what no consumer would read, and sends everything else on as it is.
func ExampleAccepts() {
	for _, body := range []string{`{"job":"u","meta":{"schema_version":1}}`, `{"job":"u"}`, `<job>`} {
		if envelope.Accepts([]byte(body)) {
			fmt.Println("send on", body)
		} else {
			fmt.Println("park", body)
		}
	}
	// Output:
	// send on {"job":"u","meta":{"schema_version":1}}
	// park {"job":"u"}
	// park <job>
}
