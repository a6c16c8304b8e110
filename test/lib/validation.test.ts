import { Type } from '@sinclair/typebox'
import t from 'tap'
import { SessionCommands } from '../../schemas/commands.js'
import { SubmitExecutionResultRequest } from '../../schemas/executions.js'
import { ResolvePermissionRequest } from '../../schemas/permissions.js'
import { CreateProfileRequest, UpdateProfileRequest } from '../../schemas/profiles.js'
import { UpdateSessionRequest } from '../../schemas/sessions.js'
import { UsageQuery } from '../../schemas/usage.js'
import { compileSchema } from '../../src/lib/validation.js'

t.test('a body of several shapes is refused by the field that chooses between them', async (t) => {
  const answer = compileSchema(ResolvePermissionRequest)
  for (const body of [{}, { behavior: 'nope' }, { behavior: null }, { updatedInput: {} }])
    t.same(answer.errors(body), [{ path: 'behavior', message: 'Expected one of allow, deny.' }], JSON.stringify(body))
  for (const body of [null, [], 'allow', 1]) t.same(answer.errors(body), [{ path: '', message: 'Expected object.' }])
  t.same(
    compileSchema(SessionCommands.permission_decision).errors({ type: 'permission_decision', requestId: 'x' }),
    [{ path: 'behavior', message: 'Expected one of allow, deny.' }],
    'not by the type, which all of them share',
  )
  const result = compileSchema(SubmitExecutionResultRequest)
  t.same(result.errors({ output: 1 }), [{ path: 'status', message: 'Expected one of ok, failed.' }])
  for (const output of [{}, { type: 'xml', value: 1 }])
    t.same(result.errors({ status: 'ok', output }), [{ path: 'output.type', message: 'Expected one of json, text.' }])
  t.same(result.errors({ status: 'ok', output: 1 }), [{ path: 'output', message: 'Expected object.' }])
})

t.test('what may be null is refused for what it would be otherwise', async (t) => {
  const rename = compileSchema(UpdateSessionRequest)
  t.same(rename.errors({ title: 1 }), [{ path: 'title', message: 'Expected string.' }])
  t.match(rename.errors({ title: '' }), [{ path: 'title', message: /length greater or equal to 1/ }])
  t.match(rename.errors({ title: 'x'.repeat(501) }), [{ path: 'title', message: /length less or equal to 500/ }])
  t.same(rename.errors({ title: null }), [])
  const update = compileSchema(UpdateProfileRequest)
  t.same(update.errors({ engine: 'x' }), [{ path: 'engine', message: 'Expected one of cli, provider.' }])
  t.same(update.errors({ provider: 1 }), [{ path: 'provider', message: 'Expected object.' }])
  t.same(update.errors({ provider: { id: 1 } }), [{ path: 'provider.id', message: 'Expected string.' }])
})

t.test('shapes that nothing chooses between are told as they are', async (t) => {
  const either = compileSchema(Type.Object({ x: Type.Union([Type.String(), Type.Number()]) }))
  t.same(either.errors({ x: true }), [{ path: 'x', message: 'Matches none of the accepted shapes.' }])
})

t.test('what does not match is refused in words, not by an expression', async (t) => {
  const usage = compileSchema(UsageQuery)
  t.same(usage.errors({ from: 'yesterday', by: 'model' }), [
    { path: 'from', message: 'Expected a day, as in 2026-01-31.' },
    {
      path: 'by',
      message:
        'Expected one or several of day, profile, agent, person, with commas and no spaces between them, as in day,profile.',
    },
  ])
  const profile = compileSchema(CreateProfileRequest)
  t.match(profile.errors({ name: 'my profile', provider: { id: 'openai', apiKeyEnv: 'sk-1' } }), [
    { path: 'name', message: /^Expected at most 64 letters from A to Z and a to z, digits, / },
    { path: 'provider.apiKeyEnv', message: 'Expected the name of an environment variable.' },
  ])
  t.match(profile.errors({ name: 'büro' }), [{ path: 'name', message: /A to Z and a to z/ }], 'ü is a letter, too')
})
