package envelope_test

import (
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
	fmt.Println(string(body), err)
	// Output: {"job":"urn:babel:orders:created","trace_id":"","data":{"order_id":1042},"meta":{"id":"f1e2d3c4","queue":"orders","lang":"go","schema_version":1,"created_at":0},"attempts":0} <nil>
}
