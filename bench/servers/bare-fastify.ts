import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import type { FastifyPluginAsyncTypebox, TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import fastify, { type FastifyInstance } from 'fastify'
import { parseJsonBodies, validatorCompiler } from '../../plugins/json.js'
import {
  ExecutionParams,
  SubmitExecutionResultRequest,
  SubmitExecutionResultResponse,
} from '../../schemas/executions.js'
import { CreateSessionRequest, SessionInfo, SessionParams } from '../../schemas/sessions.js'
import type { RunnerHost } from '../../src/engines/runner.js'
import { keepTickShape } from '../../src/lib/tick-shape.js'
import { ScriptedRunner } from '../../test/fixtures/scripted-engine.js'
import { answer } from '../lib/child.js'
import { sessionInfo } from './session-info.js'

/**
 * The same shapes over a Map: no policy, no paths, no log, nobody to tell. They are parsed and checked as in the gateway, or, with `plain` as
 * first argument, as Fastify does by itself.
 */
const isPlain = process.argv[2] === 'plain'
const sessions = new Map<string, { info: SessionInfo; runner: ScriptedRunner }>()
const deaf = { emit() {} } as unknown as RunnerHost

const routes: FastifyPluginAsyncTypebox = async (scope) => {
  scope.post(
    '/sessions',
    { schema: { body: CreateSessionRequest, response: { 201: SessionInfo } } },
    async ({ body }, reply) => {
      const info = sessionInfo(randomUUID(), body)
      const runner = new ScriptedRunner(
        {
          sessionId: info.id,
          config: body,
          profile: { name: 'bench', engine: 'provider' },
          bridge: { execute: () => Promise.reject(new Error('nobody is there')) },
        },
        {},
      )
      void runner.start(deaf)
      sessions.set(info.id, { info, runner })
      return reply.code(201).header('location', `/v1/sessions/${info.id}`).send(info)
    },
  )

  scope.post(
    '/executions/:executionId/result',
    {
      schema: {
        params: ExecutionParams,
        body: SubmitExecutionResultRequest,
        response: { 200: SubmitExecutionResultResponse },
      },
    },
    async ({ params }) => ({ applied: true, sessionId: params.executionId }),
  )

  scope.delete(
    '/sessions/:id',
    { schema: { params: SessionParams, response: { 200: SessionInfo } } },
    async ({ params }) => {
      const { info, runner } = sessions.get(params.id)!
      sessions.delete(params.id)
      await runner.close()
      return info
    },
  )
}

// as in the gateway's own server, so that luck with V8 decides neither
keepTickShape()
const app = fastify().withTypeProvider<TypeBoxTypeProvider>()
if (!isPlain) {
  app.setValidatorCompiler(validatorCompiler)
  parseJsonBodies(app as unknown as FastifyInstance, 1024 * 1024)
}
await app.register(routes, { prefix: '/v1' })
const url = await app.listen({ port: 0, host: '127.0.0.1' })

answer({ url: () => url, cwd: () => tmpdir() })
