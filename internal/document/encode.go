package document

import "encoding/json"

// Encode returns a value as JSON. It panics for a value that cannot be JSON, which is a programming error: what is encoded is
// made of strings and numbers.
func Encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// EncodeModule returns the JSON of a Caddy module, with its name in the field that Caddy reads it from.
func EncodeModule(field, name string, module any) json.RawMessage {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(Encode(module), &fields); err != nil {
		panic(err)
	}
	fields[field] = Encode(name)
	return Encode(fields)
}
