import { Type } from '@sinclair/typebox'
import { Dictionary, strict } from '../../../schemas/common.js'
import { argumentOf } from '../../lib/argument.js'
import type { Clock } from '../../lib/clock.js'
import type { EgressGuardOptions } from '../../webhooks/egress.js'
import { assertDeferredTools } from '../deferred-tools.js'
import type { CreateEngineRunner, DeferredTool } from '../runner.js'
import type { ScratchLimits } from './files.js'
import type { HostMcpServer } from './mcp.js'
import type { ModelPrice } from './usage.js'
import type { WebSearch } from './web-tools.js'

export interface ProviderEngineOptions {
  /** MCP servers by the name that profiles grant. Default none. */
  mcpServers?: Record<string, HostMcpServer> | undefined
  /** Backend of `web_search`; without one the tool is not built. */
  webSearch?: WebSearch | undefined
  /** Beside those that the gateway hands over. Default none. Declaring one grants it: a call is handed over without asking, because what happens then is the operator's to decide. */
  deferredTools?: readonly DeferredTool[] | undefined
  /** What `web_fetch` and `download` may reach. Default: public addresses only. */
  egress?: EgressGuardOptions | undefined
  /** US dollars per million tokens by model; a model that is not listed costs 0 unless its provider tells the cost. Default none. */
  prices?: Record<string, ModelPrice> | undefined
  /** Tokens that one answer may take. Default: as many as the provider gives. */
  maxOutputTokens?: number | undefined
  /** Limits of a session's scratch filesystem. */
  files?: ScratchLimits | undefined
  /** Where `apiKeyEnv` is looked up. Default `process.env`. */
  env?: Record<string, string | undefined> | undefined
  /** Pause between two pieces of an answer of the `demo` provider. Default 15. */
  demoChunkDelayMs?: number | undefined
  /** Hears of MCP servers that could not be connected; the session goes on without their tools. */
  onError?: ((error: Error, context: { sessionId: string; mcpServer: string }) => void) | undefined
  clock?: Clock | undefined
}

const Fn = Type.Optional(Type.Function([], Type.Any()))
const Obj = Type.Object({})
const Limit = Type.Optional(Type.Integer({ minimum: 1 }))
/** None at all is a limit too. */
const Quota = Type.Optional(Type.Integer({ minimum: 0 }))
const Dollars = Type.Number({ minimum: 0 })
const Price = Type.Object(
  { input: Dollars, output: Dollars, cacheRead: Type.Optional(Dollars), cacheCreation: Type.Optional(Dollars) },
  strict,
)

const optionsOf = argumentOf<ProviderEngineOptions>(
  'providerEngine(options)',
  Type.Object(
    {
      mcpServers: Type.Optional(Dictionary(Obj)),
      webSearch: Fn,
      deferredTools: Type.Optional(Type.Array(Type.Object({ name: Type.String() }))),
      egress: Type.Optional(Obj),
      prices: Type.Optional(Dictionary(Price)),
      maxOutputTokens: Limit,
      files: Type.Optional(Type.Object({ maxFiles: Quota, maxBytes: Quota }, strict)),
      env: Type.Optional(Obj),
      demoChunkDelayMs: Type.Optional(Type.Number({ minimum: 0 })),
      onError: Fn,
      clock: Type.Optional(Obj),
    },
    strict,
  ),
)

const BUNDLED = new WeakSet<CreateEngineRunner>()

/**
 * Runs `provider` profiles on the AI SDK.
 *
 * The runner it creates rejects with a `GatewayError`: `SG_ERR_ENGINE_START` when a variable is not set, a package is not installed or
 * an MCP server was not wired; `SG_ERR_UNSUPPORTED` for a model that the profile does not list; `SG_ERR_PERMISSION_MODE`.
 * @throws {GatewayError} `SG_ERR_OPTION` for an option that is none, or not usable
 */
export function providerEngine(given: ProviderEngineOptions = {}): CreateEngineRunner {
  const options = optionsOf(given)
  assertDeferredTools(options.deferredTools ?? [], 'deferredTools')
  let create: Promise<CreateEngineRunner> | undefined
  const engine: CreateEngineRunner = async (context) => {
    // The SDK costs time and 20 MB to load, which a gateway without provider sessions need not spend.
    create ??= import('./build.js').then((module) => module.runnerBuilder(options))
    return (await create)(context)
  }
  BUNDLED.add(engine)
  return engine
}

/** Whether credentials are read as profiles say, and not by an engine of the host's. */
export const isBundledEngine = (create: CreateEngineRunner): boolean => BUNDLED.has(create)

/** The bundled `createEngineRunner`, with nothing wired by a host: no MCP servers, no search backend, public addresses only. */
export const createProviderRunner: CreateEngineRunner = providerEngine()
