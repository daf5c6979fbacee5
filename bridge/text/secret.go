package text

import "regexp"

// secretName matches words that say so wherever they stand, and those that do so at the end of a
// name, or before what such a value is called: AUTHOR, AUTH_MODE, KEYMAP and COMPASS name none.
var secretName = regexp.MustCompile(`(?i)token|secret|passw|passphrase|pwd|credential|cookie|private|` +
	`signature|jwt|bearer|dsn|webhook|authoriz|authent|` +
	`(auth|keys?|session)($|[_-]?([0-9]|b64|base64|data|header|id$|info|json|pem|string|value))|` +
	`(^|[_-]|db)pass($|[_0-9-])|(^|[_-])(pat|pin|sas)($|[_-])`)

// SecretName reports whether the name of a variable, a header or an option says that its value is a
// secret.
func SecretName(name string) bool { return secretName.MatchString(name) }
