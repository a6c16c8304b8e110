/** Throws an error of the system again, unless it has that code: then it stands for the answer. */
export const unless =
  <T>(code: string, answer: T) =>
  (error: NodeJS.ErrnoException): T => {
    if (error.code === code) return answer
    throw error
  }
