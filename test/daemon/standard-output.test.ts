import t from 'tap'
import { StandardOutput } from '../../src/daemon/standard-output.js'

const failing = (code: string): never => {
  throw Object.assign(new Error(`${code}: write`), { code })
}

/** A disk with room for so many bytes, which takes a few at a time. */
function disk(room: number) {
  const it = { room, text: '', busy: 0 }
  const output = new StandardOutput((bytes) => {
    if (it.busy-- > 0) failing('EAGAIN')
    if (it.room === 0) failing('ENOSPC')
    const taken = bytes.subarray(0, Math.min(it.room, 7))
    it.room -= taken.length
    it.text += taken.toString('latin1')
    return taken.length
  })
  return { it, output }
}

t.test('every line is written whole, whatever is taken at a time', async (t) => {
  const { it, output } = disk(1_000)
  it.busy = 2
  for (const line of ['{"msg":"a rather long line"}\n', '{}\n']) output.write(line)
  t.equal(it.text, '{"msg":"a rather long line"}\n{}\n')
})

t.test('what is not taken is lost and counted, and a line that was cut off does not spoil the next one', async (t) => {
  const { it, output } = disk(10)
  output.onTakenAgain = (lines) => output.write(`${lines} lost\n`)
  for (const line of ['whole\n', 'cut off here\n', 'none of it\n']) output.write(line)
  t.equal(it.text, 'whole\ncut ')
  it.room = 1_000
  output.write('again\n')
  output.write('and on\n')
  t.equal(it.text, 'whole\ncut \nagain\n2 lost\nand on\n')
})

t.test('a reader that stopped is waited for once, not by everybody, and told how many lines it missed', async (t) => {
  let isStopped = true
  let pauses = 0
  let text = ''
  const output = new StandardOutput(
    (bytes) => {
      if (isStopped) failing('EAGAIN')
      text += bytes.toString('latin1')
      return bytes.length
    },
    () => {
      if (++pauses > 100) throw new Error('it waits for ever')
    },
  )
  output.onTakenAgain = (lines) => output.write(`${lines} lost\n`)
  output.write('one\n')
  const waited = pauses
  t.ok(waited > 0, 'which may only be slow')
  for (const line of ['two\n', 'three\n']) output.write(line)
  t.equal(pauses, waited, 'the lines after it wait for nothing')
  isStopped = false
  output.write('four\n')
  t.equal(text, 'four\n3 lost\n')
  isStopped = true
  output.write('five\n')
  t.equal(pauses, 2 * waited, 'one that takes lines again is waited for as before')
})
