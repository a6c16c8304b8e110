/** Whether a key is of words that are being composed. Safari says of the one that ends them, by its code alone, that it was. */
export const isOfComposing = ({ isComposing, keyCode }: KeyboardEvent): boolean => isComposing || keyCode === 229
