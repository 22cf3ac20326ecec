package provider_test

import (
	"slices"
	"strings"
)

// camel returns a content's part with the names that the API prefers.
func camel(part jsonObject) jsonObject {
	named := jsonObject{}
	for name, value := range part {
		words := strings.Split(name, "_")
		for i, word := range words[1:] {
			words[i+1] = strings.ToUpper(word[:min(1, len(word))]) + word[min(1, len(word)):]
		}
		named[strings.Join(words, "")] = value
	}
	return named
}

var geminiPart = []string{"text", "inlineData", "fileData", "functionCall", "functionResponse",
	"executableCode", "codeExecutionResult", "toolCall", "toolResponse"}

// geminiContent returns the calls and the responses of a content, and how many
// other parts it has.
func geminiContent(i int, content jsonObject) (calls, responses []jsonObject, others int, err error) {
	list, ok := objectsIn(content["parts"])
	if !ok || len(list) == 0 {
		return nil, nil, 0, breaks(i, "content", "must include at least one parts field")
	}
	for _, part := range list {
		part = camel(part)
		data := 0
		for name := range part {
			if slices.Contains(geminiPart, name) {
				data++
			} else if !slices.Contains([]string{"thought", "thoughtSignature", "videoMetadata"}, name) {
				return nil, nil, 0, breaks(i, "shape", "unknown name "+name)
			}
		}
		if call, ok := part["functionCall"].(jsonObject); ok {
			calls = append(calls, call)
			continue
		}
		if response, ok := part["functionResponse"].(jsonObject); ok {
			responses = append(responses, response)
			continue
		}
		others++
		if data != 1 {
			return nil, nil, 0, breaks(i, "content", "a part must have one data field")
		}
	}
	return calls, responses, others, nil
}

func refusedByGemini(body jsonObject, _ bool) error {
	contents, ok := objectsIn(body["contents"])
	if !ok {
		return breaks(0, "shape", "contents is no array of objects")
	}
	instruction, ok := body["systemInstruction"].(jsonObject)
	if !ok {
		instruction, ok = body["system_instruction"].(jsonObject)
	}
	if ok {
		if _, _, _, err := geminiContent(0, instruction); err != nil {
			return err
		}
	}
	// Consecutive contents of one role are one turn.
	var waiting, called []jsonObject // the calls of the model's turn before, and of this one
	before, talked := "", false      // the role of the content before; whether the user's turn has more than responses
	for i, content := range contents {
		role := textIn(content["role"])
		if content["role"] == nil || role == "function" {
			role = "user"
		}
		calls, responses, others, err := geminiContent(i, content)
		if role != before {
			if len(waiting) > 0 {
				return breaks(i, "unanswered-call", "the number of function response parts is not that of the function call parts")
			}
			waiting, called, talked = called, nil, false
		}
		switch {
		case err != nil:
			return err
		case role != "user" && role != "model":
			return breaks(i, "role", "please use a valid role: user, model")
		case before == "" && len(calls) > 0:
			return breaks(i, "call-turn", "function call turn comes immediately after a user turn or after a function response turn")
		case before == "" && role != "user":
			return breaks(i, "first", "please ensure that the first content is the user's")
		case role == "user" && len(calls) > 0 || role == "model" && len(responses) > 0:
			return breaks(i, "shape", "calls are the model's, responses the user's")
		case len(responses) > 1 && others > 0 || len(responses) > 0 && talked:
			return breaks(i, "not-adjacent", "function responses come before anything else, several of them in contents of their own")
		}
		before, talked = role, talked || others > 0
		called = append(called, calls...)
		for _, response := range responses {
			n := slices.IndexFunc(waiting, func(call jsonObject) bool {
				return call["name"] == response["name"] && call["id"] == response["id"]
			})
			if _, is := response["response"].(jsonObject); !is {
				return breaks(i, "shape", "response must be a struct")
			}
			if n < 0 {
				return breaks(i, "orphan-result", "no call has the name of the response")
			}
			waiting = slices.Delete(waiting, n, n+1)
		}
		for _, call := range calls {
			if _, is := call["args"].(jsonObject); !is && call["args"] != nil {
				return breaks(i, "shape", "args must be a struct")
			}
			if !geminiName.MatchString(textIn(call["name"])) {
				return breaks(i, "name", "invalid function name")
			}
		}
	}
	if len(waiting) > 0 || len(called) > 0 {
		return breaks(len(contents), "unanswered-call", "the number of function response parts is not that of the function call parts")
	}
	return nil
}
