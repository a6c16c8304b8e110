import { isObject, parsedObject, wholeJson } from './json.js'

/** A form for the input of a tool: from its schema where it is known, else from the input itself. Pure. */

/** As much of a JSON Schema as is made a form of. */
export interface Schema {
  type?: string
  title?: string
  description?: string
  enum?: unknown[]
  properties?: Record<string, Schema>
  required?: string[]
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
}

/** `long`: a text of several lines. `json`: whatever has no field of its own. */
export type FieldKind = 'text' | 'long' | 'number' | 'boolean' | 'choice' | 'json'

export interface FormField {
  name: string
  kind: FieldKind
  label: string
  hint: string | undefined
  isRequired: boolean
  choices: readonly string[]
  schema: Schema
}

export type FieldProblem =
  | 'required'
  | 'number'
  | 'integer'
  | 'json'
  | { least: number }
  | { most: number }
  | { shortest: number }
  | { longest: number }

/** What is in the fields: texts, and whether a box is ticked. */
export type Values = Readonly<Record<string, string | boolean>>

/** More members than that are edited as JSON: a form of them would help nobody. */
const MAX_FIELDS = 24
const LONG_TEXT = 60

/** The schema that an input itself suggests. */
export function schemaOf(input: Record<string, unknown>): Schema {
  const properties = Object.fromEntries(Object.entries(input).map(([name, value]) => [name, { type: typeOf(value) }]))
  return { type: 'object', properties }
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return 'array'
  return value === null ? 'null' : typeof value
}

/** @returns undefined when there is nothing to make a form of */
export function fieldsOf(schema: Schema, input: Record<string, unknown>): FormField[] | undefined {
  const properties = isObject(schema.properties) ? (schema.properties as Record<string, Schema>) : {}
  const names = [...new Set([...Object.keys(properties), ...Object.keys(input)])]
  if (names.length === 0 || names.length > MAX_FIELDS) return undefined
  const required = new Set(Array.isArray(schema.required) ? schema.required : [])
  return names.map((name) => {
    const own = isObject(properties[name]) ? properties[name] : { type: typeOf(input[name]) }
    const choices = Array.isArray(own.enum) && own.enum.every((one) => typeof one === 'string') ? own.enum : []
    return {
      name,
      kind: kindOf(own, input[name], choices.length > 0),
      label: typeof own.title === 'string' ? own.title : name,
      hint: typeof own.description === 'string' ? own.description : undefined,
      isRequired: required.has(name),
      choices: choices as string[],
      schema: own,
    }
  })
}

/** A value that is not of the type that the schema says is shown as what it is. */
function kindOf({ type }: Schema, value: unknown, hasChoices: boolean): FieldKind {
  const isAbsent = value === undefined
  if (hasChoices && (isAbsent || typeof value === 'string')) return 'choice'
  if (type === 'boolean' && (isAbsent || typeof value === 'boolean')) return 'boolean'
  if ((type === 'number' || type === 'integer') && (isAbsent || typeof value === 'number')) return 'number'
  if (type === 'string' && (isAbsent || typeof value === 'string')) {
    const text = (value as string | undefined) ?? ''
    return text.length > LONG_TEXT || text.includes('\n') ? 'long' : 'text'
  }
  return 'json'
}

export function valuesOf(fields: readonly FormField[], input: Record<string, unknown>): Values {
  return Object.fromEntries(
    fields.map(({ name, kind }) => {
      const value = input[name]
      if (kind === 'boolean') return [name, value === true]
      if (value === undefined) return [name, '']
      return [name, kind === 'json' ? wholeJson(value) : String(value)]
    }),
  )
}

/**
 * The input that the fields make. A field that was left as it was changes nothing, and one that was and is empty stays absent.
 * @param input what it was
 */
export function inputFrom(
  fields: readonly FormField[],
  values: Values,
  input: Record<string, unknown>,
): { input: Record<string, unknown> } | { problems: Map<string, FieldProblem> } {
  const before = valuesOf(fields, input)
  const changed: [string, unknown][] = []
  const problems = new Map<string, FieldProblem>()
  for (const field of fields) {
    const given = values[field.name]
    const isAsBefore = given === before[field.name]
    if (isAsBefore && !(field.isRequired && given === '' && input[field.name] === undefined)) continue
    const { value, problem } = enteredIn(field, given ?? '')
    if (problem !== undefined) problems.set(field.name, problem)
    else changed.push([field.name, value])
  }
  if (problems.size > 0) return { problems }
  // a member may be called `__proto__`
  const entries = new Map([...Object.entries(input), ...changed])
  return { input: Object.fromEntries([...entries].filter(([, value]) => value !== undefined)) }
}

function enteredIn(
  { kind, schema, isRequired, choices }: FormField,
  given: string | boolean,
): { value?: unknown; problem?: FieldProblem } {
  if (typeof given === 'boolean') return { value: given }
  switch (kind) {
    case 'number': {
      const number = Number(given.trim() || Number.NaN)
      if (given.trim() === '' && !isRequired) return { value: undefined }
      if (!Number.isFinite(number)) return { problem: 'number' }
      if (schema.type === 'integer' && !Number.isInteger(number)) return { problem: 'integer' }
      if (typeof schema.minimum === 'number' && number < schema.minimum) return { problem: { least: schema.minimum } }
      if (typeof schema.maximum === 'number' && number > schema.maximum) return { problem: { most: schema.maximum } }
      return { value: number }
    }
    case 'json': {
      if (given.trim() === '') return isRequired ? { problem: 'required' } : { value: undefined }
      const parsed = parsedObject(`{"value":${given}}`)
      return 'value' in parsed && Object.keys(parsed.value).length === 1
        ? { value: parsed.value.value }
        : { problem: 'json' }
    }
    case 'choice':
      if (given === '') return isRequired ? { problem: 'required' } : { value: undefined }
      return choices.includes(given) ? { value: given } : { problem: 'required' }
    default: {
      // the patterns of a schema are not tried: they are somebody else's, and may take for ever
      if (given === '' && isRequired) return { problem: 'required' }
      const { minLength, maxLength } = schema
      if (typeof minLength === 'number' && given.length < minLength) return { problem: { shortest: minLength } }
      if (typeof maxLength === 'number' && given.length > maxLength) return { problem: { longest: maxLength } }
      return { value: given }
    }
  }
}
