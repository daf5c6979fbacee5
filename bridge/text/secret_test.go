package text

import "testing"

func TestSecretName(t *testing.T) {
	for want, names := range map[bool][]string{
		true: {"GITHUB_TOKEN", "apiKey", "X-Api-Key", "OPENAI_APIKEY", "AWS_ACCESS_KEY_ID", "accessKeyId", "KEY",
			"ssh_key_2", "DB_PASS", "DBPASS", "PGPASSWORD", "PASS", "Authorization", "Proxy-Authorization", "AUTH",
			"basic-auth", "AUTH_HEADER", "Cookie", "SENTRY_DSN", "GITHUB_PAT", "SESSION", "SESSION_ID",
			"SLACK_WEBHOOK_URL", "--api-key", "GOOGLE_CREDENTIALS", "PIN", "JWT", "TS_AUTHKEY"},
		false: {"GIT_AUTHOR_NAME", "AUTHOR", "AUTHORITY", "AUTH_MODE", "KEYMAP", "KEYBOARD_LAYOUT", "KEY_FILE",
			"COMPASS_URL", "BYPASS", "XDG_SESSION_TYPE", "SESSION_NAME", "PATH", "PING_HOST", "PATTERN", "HEADER",
			"--header", "MODE", "SASL_MODE"},
	} {
		for _, name := range names {
			if SecretName(name) != want {
				t.Errorf("%s: %v", name, !want)
			}
		}
	}
}
