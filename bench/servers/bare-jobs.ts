import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import fastify, { type FastifyInstance } from 'fastify'
import { WebSocketServer } from 'ws'
import { parseJsonBodies, validatorCompiler } from '../../plugins/json.js'
import { CreateJobRequest, type JobEventType, JobInfo } from '../../schemas/jobs.js'
import { newJob } from '../../src/jobs/job.js'
import { shown } from '../../src/jobs/patch.js'
import { createMemoryQueueAdapter } from '../../src/storage/memory/queue-adapter.js'
import { answer } from '../lib/child.js'
import { addKnownJobs } from './known-jobs.js'

/** The same shapes, parsed and checked in the same way, over a Map: no states, no sessions, no limits; a page is what it always was. */
const jobs = new Map<string, JobInfo>()
const known = createMemoryQueueAdapter()
await addKnownJobs(known, 100, tmpdir())
const page = (await known.list()).map(({ info }) => shown(info))

const app = fastify().withTypeProvider<TypeBoxTypeProvider>()
app.setValidatorCompiler(validatorCompiler)
parseJsonBodies(app as unknown as FastifyInstance, 1024 * 1024)
app.post(
  '/v1/jobs',
  { schema: { body: CreateJobRequest, response: { 201: JobInfo } } },
  async ({ body: request }, reply) => {
    const given = { id: randomUUID(), now: Date.now(), profile: 'bench', generation: '', cwd: request.session.cwd }
    const job = shown(newJob(request, given))
    jobs.set(job.id, job)
    setImmediate(() => {
      tell('job_progress', job)
      tell('job_completed', job)
      jobs.delete(job.id)
    })
    return reply.code(201).header('location', `/v1/jobs/${job.id}`).send(job)
  },
)
app.get('/v1/jobs', async (_request, reply) =>
  reply.header('content-type', 'application/json; charset=utf-8').send(JSON.stringify(page)),
)
const sockets = new WebSocketServer({ server: app.server, perMessageDeflate: false })
const url = await app.listen({ port: 0, host: '127.0.0.1' })

function tell(type: JobEventType, job: JobInfo): void {
  const frame = JSON.stringify({ type: 'job_event', event: { id: randomUUID(), type, job, ts: Date.now() } })
  for (const socket of sockets.clients) socket.send(frame)
}

answer({ url: () => url })
