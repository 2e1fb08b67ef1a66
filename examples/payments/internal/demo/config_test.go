package demo

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	good := Config{Messages: 10, Workers: 2, Kills: 10}
	assert.NoError(t, good.Validate())
	tests := map[string]struct {
		change func(*Config)
		says   string
	}{
		"no messages":      {func(c *Config) { c.Messages = 0 }, "-messages is 0"},
		"no workers":       {func(c *Config) { c.Workers = 0 }, "-workers is 0"},
		"many workers":     {func(c *Config) { c.Workers = 1000 }, "-workers is 1000"},
		"negative kills":   {func(c *Config) { c.Kills = -1 }, "-kills is -1"},
		"kills > messages": {func(c *Config) { c.Kills = 11 }, "-kills is 11"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := good
			tt.change(&c)
			assert.ErrorContains(t, c.Validate(), tt.says)
		})
	}
}
