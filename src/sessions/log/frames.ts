const FIN_TEXT = 0x81
const LENGTH_16 = 126
const LENGTH_64 = 127

/** Bytes that the header of an unmasked server frame takes for a payload of that many bytes. */
export const frameHeaderLength = (payloadBytes: number): number =>
  payloadBytes < LENGTH_16 ? 2 : payloadBytes < 65_536 ? 4 : 10

/** Writes the header of one whole text message (RFC 6455, section 5.2) and returns where the payload begins. */
export function writeFrameHeader(target: Buffer, at: number, payloadBytes: number): number {
  target[at] = FIN_TEXT
  if (payloadBytes < LENGTH_16) {
    target[at + 1] = payloadBytes
    return at + 2
  }
  if (payloadBytes < 65_536) {
    target[at + 1] = LENGTH_16
    target.writeUInt16BE(payloadBytes, at + 2)
    return at + 4
  }
  target[at + 1] = LENGTH_64
  target.writeUInt32BE(0, at + 2)
  target.writeUInt32BE(payloadBytes, at + 6)
  return at + 10
}

/** Where the payload of the frame that starts at `at` begins. */
export function framePayloadStart(source: Buffer, at: number): number {
  const length = source[at + 1]!
  return at + (length < LENGTH_16 ? 2 : length === LENGTH_16 ? 4 : 10)
}

/** One text message as the bytes that go on a socket. */
export function encodeTextFrame(text: string): Buffer {
  const payloadBytes = Buffer.byteLength(text)
  const frame = Buffer.allocUnsafe(frameHeaderLength(payloadBytes) + payloadBytes)
  frame.write(text, writeFrameHeader(frame, 0, payloadBytes))
  return frame
}
