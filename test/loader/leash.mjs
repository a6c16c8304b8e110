/** A daemon that a test started ends with it, however the test ends: no teardown runs in a process that was killed. */
import { isMainThread } from 'node:worker_threads'

if (isMainThread && process.channel) {
  process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
  process.channel.unref()
}
