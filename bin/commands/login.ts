import { clientOf, connectionOf, gatewayUrl } from '../terminal/connection.js'
import { CommandFailure, EXIT } from '../terminal/exit.js'
import { isInteractive } from '../terminal/keys.js'
import { removeLogin, writeLogin } from '../terminal/login-file.js'
import { note } from '../terminal/output.js'
import { readStdin } from '../terminal/stdin.js'
import { askWords } from '../terminal/words.js'

/** Keeps the address of a gateway and the token for it, once the gateway has taken it. */
export async function login(given: string | undefined, flags: { url?: string; token?: string }): Promise<void> {
  if (given !== undefined && flags.url !== undefined && given !== flags.url)
    throw new CommandFailure(`The address is ${given} and --url is ${flags.url}: name one of them.`, EXIT.usage)
  const { url, token: pasted } = await addressOf(given ?? flags.url)
  const token = flags.token ?? pasted ?? (process.env.SESSION_GATEWAY_TOKEN || (await askToken()))
  await clientOf({ url, token }).profiles.list()
  const file = writeLogin({ url, ...(token && { token }) })
  note(
    `Logged in to ${url}${token ? '. The token is' : ' without a token. The address is'} in ${file}, for your eyes only.`,
  )
}

export async function logout(): Promise<void> {
  const file = removeLogin()
  note(file === undefined ? 'There is no login to forget.' : `Removed ${file}.`)
}

/** The address, and the token where both are pasted at once. */
async function addressOf(given: string | undefined): Promise<{ url: string; token?: string | undefined }> {
  if (given !== undefined) return { url: gatewayUrl(given) }
  const initial = connectionOf({}).url
  if (!isInteractive()) return { url: initial }
  const answer = await askWords('Address of the gateway:', { initial })
  if (answer === undefined) throw new CommandFailure('Left.', EXIT.interrupted)
  // there is no blank in either
  const [address = '', token, ...rest] = answer.trim().split(/\s+/)
  if (rest.length > 0) throw new CommandFailure('Write the address, and at most a token behind it.', EXIT.usage)
  return { url: gatewayUrl(address || initial), token }
}

async function askToken(): Promise<string> {
  if (!isInteractive()) return (await readStdin()).trim()
  const answer = await askWords('Token, which is not shown (none, when it asks for none):', { isSecret: true })
  if (answer === undefined) throw new CommandFailure('Left.', EXIT.interrupted)
  return answer.trim()
}
