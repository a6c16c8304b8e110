/** Lets a daemon find the Claude Agent SDK where the tests' agents are installed: CLAUDE_SDK_AT, the URL of its entry. */
import { register } from 'node:module'

const url = JSON.stringify(process.env.CLAUDE_SDK_AT)
register(
  `data:text/javascript,${encodeURIComponent(
    `export const resolve = (name, context, next) =>
       name === '@anthropic-ai/claude-agent-sdk' ? { url: ${url}, shortCircuit: true } : next(name, context)`,
  )}`,
)
