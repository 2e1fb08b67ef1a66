package envelope_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/txidem/envelope"
)

// valid is an envelope as a producer sends it; the tests change one thing each.
const valid = `{"job":"urn:babel:orders:created","trace_id":"trace-1","data":{"order_id":1042},` +
	`"meta":{"id":"id-1","queue":"orders","lang":"php","schema_version":1,"created_at":1749132727000},"attempts":2}`

const deadLettered = `{"job":"urn:babel:orders:created","trace_id":"trace-1","data":{},` +
	`"meta":{"id":"id-1","queue":"orders","lang":"php","schema_version":1,"created_at":1749132727000},"attempts":3,` +
	`"dead_letter":{"reason":"failed","error":"timeout","exception":null,"failed_at":1749132730000,` +
	`"original_queue":"orders","attempts":3,"lang":"php"}}`

// replace changes body in one place, and fails where it would change nothing.
func replace(t *testing.T, body, from, to string) []byte {
	t.Helper()
	require.Equal(t, 1, strings.Count(body, from), "the test must change exactly one place")
	return []byte(strings.Replace(body, from, to, 1))
}

func TestDecode(t *testing.T) {
	t.Parallel()
	e, err := envelope.Decode([]byte(deadLettered))
	require.NoError(t, err)
	timeout := "timeout"
	assert.Equal(t, envelope.Envelope{
		Job:      "urn:babel:orders:created",
		TraceID:  "trace-1",
		Data:     json.RawMessage(`{}`),
		Meta:     envelope.Meta{ID: "id-1", Queue: "orders", Lang: "php", SchemaVersion: 1, CreatedAt: 1749132727000},
		Attempts: 3,
		DeadLetter: &envelope.DeadLetter{
			Reason: "failed", Error: &timeout, FailedAt: 1749132730000, OriginalQueue: "orders", Attempts: 3, Lang: "php",
		},
	}, e)
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range refusals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := replace(t, deadLettered, c.from, c.to)
			e, err := envelope.Decode(body)
			require.ErrorIs(t, err, c.kind)
			assert.Zero(t, e)
			assert.False(t, envelope.Accepts(body))

			var refusal *envelope.Error
			require.ErrorAs(t, err, &refusal)
			assert.Equal(t, c.field, refusal.Field)
			assert.Equal(t, []error{c.kind}, kinds(err), "exactly one kind")
		})
	}
}

func kinds(err error) []error {
	var match []error
	for _, kind := range []error{
		envelope.ErrMalformed, envelope.ErrAmbiguous, envelope.ErrNoJob, envelope.ErrUnsupportedVersion,
	} {
		if errors.Is(err, kind) {
			match = append(match, kind)
		}
	}
	return match
}

var many0 = strings.Repeat("0", 400)

// refusals change one place of a valid body each.
var refusals = map[string]struct {
	from, to string
	kind     error
	field    string
}{
	"trailing data":        {`"lang":"php"}}`, `"lang":"php"}} {}`, envelope.ErrMalformed, ""},
	"cut off":              {`"lang":"php"}}`, `"lang":"php"}`, envelope.ErrMalformed, ""},
	"byte order mark":      {`{"job"`, "\ufeff" + `{"job"`, envelope.ErrMalformed, ""},
	"meta is no object":    {`"meta":{`, `"meta":"x","other":{`, envelope.ErrMalformed, "meta"},
	"dead_letter no obj.":  {`"dead_letter":{`, `"dead_letter":true,"other":{`, envelope.ErrMalformed, "dead_letter"},
	"data is a list":       {`"data":{}`, `"data":[]`, envelope.ErrMalformed, "data"},
	"data is a string":     {`"data":{}`, `"data":"{}"`, envelope.ErrMalformed, "data"},
	"id is a number":       {`"id":"id-1"`, `"id":1`, envelope.ErrMalformed, "meta.id"},
	"id is an object":      {`"id":"id-1"`, `"id":{}`, envelope.ErrMalformed, "meta.id"},
	"job is a number":      {`"urn:babel:orders:created"`, `7`, envelope.ErrMalformed, "job"},
	"urn is a number":      {`"trace_id"`, `"urn":7,"trace_id"`, envelope.ErrMalformed, "urn"},
	"trace_id is a list":   {`"trace-1"`, `["trace-1"]`, envelope.ErrMalformed, "trace_id"},
	"error is a number":    {`"timeout"`, `5`, envelope.ErrMalformed, "dead_letter.error"},
	"version is a string":  {`"schema_version":1`, `"schema_version":"1"`, envelope.ErrMalformed, "meta.schema_version"},
	"version fractional":   {`"schema_version":1`, `"schema_version":1.0`, envelope.ErrMalformed, "meta.schema_version"},
	"version exponent":     {`"schema_version":1`, `"schema_version":1e0`, envelope.ErrMalformed, "meta.schema_version"},
	"version is true":      {`"schema_version":1`, `"schema_version":true`, envelope.ErrMalformed, "meta.schema_version"},
	"attempts negative":    {`"attempts":3,"dead`, `"attempts":-1,"dead`, envelope.ErrMalformed, "attempts"},
	"attempts fractional":  {`"attempts":3,"dead`, `"attempts":3.0,"dead`, envelope.ErrMalformed, "attempts"},
	"attempts exponent":    {`"attempts":3,"dead`, `"attempts":3e0,"dead`, envelope.ErrMalformed, "attempts"},
	"attempts too large":   {`"attempts":3,"dead`, `"attempts":9223372036854775808,"dead`, envelope.ErrMalformed, "attempts"},
	"attempts in quotes":   {`"attempts":3,"dead`, `"attempts":"3","dead`, envelope.ErrMalformed, "attempts"},
	"created_at negative":  {`"created_at":1749132727000`, `"created_at":-1`, envelope.ErrMalformed, "meta.created_at"},
	"created_at fraction":  {`"created_at":1749132727000`, `"created_at":1.5`, envelope.ErrMalformed, "meta.created_at"},
	"created_at too large": {`"created_at":1`, `"created_at":1` + many0, envelope.ErrMalformed, "meta.created_at"},
	"failed_at negative":   {`"failed_at":1749132730000`, `"failed_at":-1`, envelope.ErrMalformed, "dead_letter.failed_at"},
	"letter's attempts":    {`"attempts":3,"lang"`, `"attempts":-3,"lang"`, envelope.ErrMalformed, "dead_letter.attempts"},

	"id twice":                {`"id":"id-1"`, `"id":"id-1","id":"id-2"`, envelope.ErrAmbiguous, "meta.id"},
	"id twice, equal":         {`"id":"id-1"`, `"id":"id-1","id":"id-1"`, envelope.ErrAmbiguous, "meta.id"},
	"id twice, once null":     {`"id":"id-1"`, `"id":"id-1","id":null`, envelope.ErrAmbiguous, "meta.id"},
	"id twice, once escaped":  {`"id":"id-1"`, `"id":"id-1","\u0069d":"id-2"`, envelope.ErrAmbiguous, "meta.id"},
	"ID beside id":            {`"id":"id-1"`, `"id":"id-1","ID":"id-2"`, envelope.ErrAmbiguous, "meta.ID"},
	"ID before id":            {`"id":"id-1"`, `"ID":"id-2","id":"id-1"`, envelope.ErrAmbiguous, "meta.ID"},
	"ID instead of id":        {`"id":"id-1"`, `"ID":"id-1"`, envelope.ErrAmbiguous, "meta.ID"},
	"meta twice":              {`"meta":{`, `"meta":{},"meta":{`, envelope.ErrAmbiguous, "meta"},
	"Meta beside meta":        {`"meta":{`, `"Meta":{},"meta":{`, envelope.ErrAmbiguous, "Meta"},
	"metA, escaped":           {`"meta":{`, `"met\u0041":{},"meta":{`, envelope.ErrAmbiguous, "metA"},
	"long s in attempts":      {`"attempts":3,"dead`, `"attempts":3,"attemptſ":4,"dead`, envelope.ErrAmbiguous, "attemptſ"},
	"URN":                     {`"trace_id"`, `"URN":"urn:other","trace_id"`, envelope.ErrAmbiguous, "URN"},
	"unknown key twice":       {`"id":"id-1"`, `"id":"id-1","x":1,"x":1`, envelope.ErrAmbiguous, "meta.x"},
	"unknown key twice, top":  {`"trace_id"`, `"x":1,"x":1,"trace_id"`, envelope.ErrAmbiguous, "x"},
	"reason twice":            {`"reason":"failed"`, `"reason":"a","reason":"b"`, envelope.ErrAmbiguous, "dead_letter.reason"},
	"Reason":                  {`"reason":"failed"`, `"Reason":"failed"`, envelope.ErrAmbiguous, "dead_letter.Reason"},
	"job and urn differ":      {`"trace_id"`, `"urn":"urn:other","trace_id"`, envelope.ErrAmbiguous, "job"},
	"job empty, urn not":      {`"job":"urn:babel:orders:created"`, `"job":"","urn":"urn:other"`, envelope.ErrAmbiguous, "job"},
	"invalid UTF-8 in id":     {`id-1`, "id-\xff", envelope.ErrAmbiguous, ""},
	"invalid UTF-8 in data":   {`"data":{}`, "\"data\":{\"a\":\"\xc3\"}", envelope.ErrAmbiguous, ""},
	"invalid UTF-8 in a key":  {`"trace_id"`, "\"\xff\":1,\"trace_id\"", envelope.ErrAmbiguous, ""},
	"a surrogate in UTF-8":    {`id-1`, "\xed\xa0\x80", envelope.ErrAmbiguous, ""},
	"high surrogate alone":    {`id-1`, `\ud800`, envelope.ErrAmbiguous, ""},
	"low surrogate alone":     {`id-1`, `\udc00`, envelope.ErrAmbiguous, ""},
	"surrogates swapped":      {`id-1`, `\udc00\ud800`, envelope.ErrAmbiguous, ""},
	"two high surrogates":     {`id-1`, `\ud800\ud800\udc00`, envelope.ErrAmbiguous, ""},
	"high surrogate, newline": {`id-1`, `\uD83D\n\uDE00`, envelope.ErrAmbiguous, ""},
	"after two backslashes":   {`id-1`, `\\\ud800`, envelope.ErrAmbiguous, ""},
	"surrogate in data":       {`"data":{}`, `"data":{"a":["\ud800"]}`, envelope.ErrAmbiguous, ""},
	"surrogate in a data key": {`"data":{}`, `"data":{"\ud800":1}`, envelope.ErrAmbiguous, ""},

	"no job":          {`"job":"urn:babel:orders:created",`, ``, envelope.ErrNoJob, "job"},
	"job is null":     {`"urn:babel:orders:created"`, `null`, envelope.ErrNoJob, "job"},
	"job is empty":    {`"urn:babel:orders:created"`, `""`, envelope.ErrNoJob, "job"},
	"urn is empty":    {`"job":"urn:babel:orders:created"`, `"urn":""`, envelope.ErrNoJob, "job"},
	"version 2":       {`"schema_version":1`, `"schema_version":2`, envelope.ErrUnsupportedVersion, "meta.schema_version"},
	"version 0":       {`"schema_version":1`, `"schema_version":0`, envelope.ErrUnsupportedVersion, "meta.schema_version"},
	"version -1":      {`"schema_version":1`, `"schema_version":-1`, envelope.ErrUnsupportedVersion, "meta.schema_version"},
	"version is huge": {`_version":1`, `_version":1` + many0, envelope.ErrUnsupportedVersion, "meta.schema_version"},
	"version is null": {`"schema_version":1`, `"schema_version":null`, envelope.ErrUnsupportedVersion, "meta.schema_version"},
	"no version":      {`,"schema_version":1`, ``, envelope.ErrUnsupportedVersion, "meta.schema_version"},
	"no meta":         {`"meta":{`, `"other":{`, envelope.ErrUnsupportedVersion, "meta.schema_version"},
	"meta is null":    {`"meta":{`, `"meta":null,"other":{`, envelope.ErrUnsupportedVersion, "meta.schema_version"},
}

func TestDecodeRefusesWhatIsNoObject(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		"", " ", "null", "true", "1", `"x"`, "[]", "[" + valid + "]", "\x00\x01\xff", "job=1", "{'job':1}",
	} {
		_, err := envelope.Decode([]byte(body))
		assert.ErrorIs(t, err, envelope.ErrMalformed, "%q", body)
	}
}

// A newer version may have renamed everything, so its number is what the error must speak of.
func TestDecodeReadsTheVersionFirst(t *testing.T) {
	t.Parallel()
	_, err := envelope.Decode([]byte(`{"kind":"x","meta":{"schema_version":2,"id":{"new":"shape"}},"attempts":"many"}`))
	require.ErrorIs(t, err, envelope.ErrUnsupportedVersion)
}

func TestDecodeAccepts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, to string
		id       string
	}{
		"as it is":                  {`id-1`, `id-1`, "id-1"},
		"white space around":        {valid, " \n\t" + valid + "\r\n", "id-1"},
		"no id":                     {`"id":"id-1",`, ``, ""},
		"empty id":                  {`id-1`, ``, ""},
		"id is null":                {`"id-1"`, `null`, ""},
		"id is not trimmed":         {`id-1`, ` ID-1\t`, " ID-1\t"},
		"NUL in id":                 {`id-1`, `id\u0000`, "id\x00"},
		"pair of surrogates":        {`id-1`, `\uD83D\ude00`, "\U0001F600"},
		"escaped backslash":         {`id-1`, `\\ud800`, `\ud800`},
		"U+FFFD itself":             {`id-1`, `\ufffd` + "\ufffd", "\ufffd\ufffd"},
		"escaped letters":           {`id-1`, `\u0069\u0064\/`, "id/"},
		"not normalized":            {`id-1`, "e\u0301", "e\u0301"},
		"escaped key":               {`"id":`, `"i\u0064":`, "id-1"},
		"unknown members":           {`"id":"id-1"`, `"id":"id-1","tenant":{"id":"x","id":"y"},"Tenant":1`, "id-1"},
		"an id elsewhere":           {`"trace_id"`, `"id":"other","ID":"other","trace_id"`, "id-1"},
		"job and urn equal":         {`"trace_id"`, `"urn":"urn:babel:orders:created","trace_id"`, "id-1"},
		"urn alone":                 {`"job"`, `"urn"`, "id-1"},
		"job null, urn set":         {`"job"`, `"job":null,"urn"`, "id-1"},
		"no trace_id":               {`"trace_id":"trace-1",`, ``, "id-1"},
		"no data":                   {`"data":{"order_id":1042},`, ``, "id-1"},
		"no attempts":               {`,"attempts":2`, ``, "id-1"},
		"attempts null":             {`"attempts":2`, `"attempts":null`, "id-1"},
		"no created_at":             {`,"created_at":1749132727000`, ``, "id-1"},
		"dead_letter null":          {`"attempts":2`, `"attempts":2,"dead_letter":null`, "id-1"},
		"dead_letter empty":         {`"attempts":2`, `"attempts":2,"dead_letter":{}`, "id-1"},
		"language not in the list":  {`php`, `rust`, "id-1"},
		"a key of data twice":       {`"order_id":1042`, `"id":"x","id":"y","ID":"z"`, "id-1"},
		"largest created_at":        {`1749132727000`, `9223372036854775807`, "id-1"},
		"the deepest that is legal": {`{"order_id":1042}`, nested(9999), "id-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := replace(t, valid, c.from, c.to)
			e, err := envelope.Decode(body)
			require.NoError(t, err)
			assert.True(t, envelope.Accepts(body))
			assert.Equal(t, c.id, e.ID())
			assert.Equal(t, "urn:babel:orders:created", e.Job)
		})
	}
}

// nested returns an object of the given depth.
func nested(depth int) string {
	return strings.Repeat(`{"a":`, depth-1) + "{}" + strings.Repeat("}", depth-1)
}

func TestDecodeReadsMissingMembersAsZero(t *testing.T) {
	t.Parallel()
	e, err := envelope.Decode([]byte(`{"urn":"u","meta":{"schema_version":1},"dead_letter":{}}`))
	require.NoError(t, err)
	assert.Equal(t, envelope.Envelope{Job: "u", Meta: envelope.Meta{SchemaVersion: 1}, DeadLetter: &envelope.DeadLetter{}}, e)
}

func TestDecodeLeavesDataAlone(t *testing.T) {
	t.Parallel()
	const data = `{ "big": 123456789012345678901234567890.10, "e": 1E400, "s": "\u003c\/<\u2028", "a":1, "a":2 }`
	body := replace(t, valid, `{"order_id":1042}`, data)
	e, err := envelope.Decode(body)
	require.NoError(t, err)
	assert.Equal(t, data, string(e.Data))

	clear(body)
	assert.Equal(t, data, string(e.Data), "the envelope must not share memory with the body")
}

// Ids that a plain json.Unmarshal maps to one string must not arrive as one id.
func TestDecodeNeverMergesIDs(t *testing.T) {
	t.Parallel()
	seen := make(map[string]string)
	for _, raw := range []string{`\ud800`, `\udc00`, "\xff", "\xfe", `\ufffd`, "\xed\xa0\x80", "\xc0\x80", `\u0000`} {
		e, err := envelope.Decode(replace(t, valid, "id-1", raw))
		if err != nil {
			continue
		}
		other, merged := seen[e.ID()]
		assert.False(t, merged, "%q and %q share an id", raw, other)
		seen[e.ID()] = raw
	}
	assert.Len(t, seen, 2, `only \ufffd and \u0000 are text`)
}

func TestDecodeSurvivesHostileBodies(t *testing.T) {
	t.Parallel()
	const many = 1 << 20
	for name, body := range map[string][]byte{
		"too deep":            replace(t, valid, `{"order_id":1042}`, nested(10_000)),
		"depth bomb, arrays":  []byte(strings.Repeat("[", many)),
		"depth bomb, objects": []byte(strings.Repeat(`{"a":`, many)),
		"endless string":      []byte(`{"job":"` + strings.Repeat("a", many)),
		"endless number":      replace(t, valid, `"attempts":2`, `"attempts":`+strings.Repeat("9", many)),
		"backslashes":         []byte(strings.Repeat(`\`, many)),
	} {
		_, err := envelope.Decode(body)
		assert.ErrorIs(t, err, envelope.ErrMalformed, name)
		assert.Less(t, len(err.Error()), 1000, name)
	}
	key := strings.Repeat("é", many)
	_, err := envelope.Decode(replace(t, valid, `"attempts":2`, `"`+key+`":1,"`+key+`":2`))
	require.ErrorIs(t, err, envelope.ErrAmbiguous)
	assert.Less(t, len(err.Error()), 1000, "a long key is quoted in part")
}

func TestDecodeSurvivesALargeBody(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 8<<20)
	e, err := envelope.Decode(replace(t, valid, "1042", `"`+large+`"`))
	require.NoError(t, err)
	assert.Len(t, e.Data, len(large)+len(`{"order_id":""}`))
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	_, err := envelope.Decode(replace(t, valid, `"id-1"`, `1`))
	require.EqualError(t, err,
		"envelope: malformed: meta.id: this is not a string, and must be one: make the producer send it in quotes")

	_, err = envelope.Decode(replace(t, valid, `"id":"id-1"`, `"a\n\u202eb":1,"a\n\u202eb":2`))
	require.ErrorContains(t, err, `envelope: ambiguous: "meta.a\n\u202eb": the key occurs twice`)
	require.NotContains(t, err.Error(), "\n")

	_, err = envelope.Decode(replace(t, valid, `"schema_version":1`, `"schema_version":1`+many0))
	require.ErrorContains(t, err, "envelope: unsupported version: meta.schema_version: the version is 1000")
	require.Less(t, len(err.Error()), 300, "a long version is quoted in part")

	_, err = envelope.Decode(replace(t, valid, `id-1`, `ab\ud800`))
	at := strings.Index(valid, "id-1") + len("ab")
	require.ErrorContains(t, err, "half of a surrogate pair at byte "+strconv.Itoa(at)+",")

	_, err = envelope.Decode(replace(t, valid, `id-1`, "é\xff"))
	require.ErrorContains(t, err, "invalid UTF-8 at byte "+strconv.Itoa(at)+",")

	_, err = envelope.Decode([]byte(`{"job":`))
	var syntax *json.SyntaxError
	require.ErrorAs(t, err, &syntax)
	require.ErrorContains(t, err, syntax.Error())
}

func TestCreatedTime(t *testing.T) {
	t.Parallel()
	assert.True(t, envelope.Meta{}.CreatedTime().IsZero())
	want := time.Date(2025, time.June, 5, 14, 12, 7, 5*int(time.Millisecond), time.UTC)
	assert.Equal(t, want, envelope.Meta{CreatedAt: 1749132727005}.CreatedTime())
}

// json.Unmarshal must be no way around the checks.
func TestUnmarshalJSON(t *testing.T) {
	t.Parallel()
	var list []envelope.Envelope
	require.NoError(t, json.Unmarshal([]byte("["+valid+"]"), &list))
	require.Len(t, list, 1)
	assert.Equal(t, "id-1", list[0].ID())

	e := list[0]
	err := json.Unmarshal(replace(t, valid, `"id":"id-1"`, `"id":"id-1","ID":"id-2"`), &e)
	require.ErrorIs(t, err, envelope.ErrAmbiguous)
	assert.Equal(t, list[0], e, "left as it was")
}
