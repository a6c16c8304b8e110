/** The mode and the model of a session, in whichever of its ways the agent lets them be set. */
export class SessionConfig {
    models;
    #mode;
    #model;
    #defaultModel;
    constructor(agent, sessionId, answer) {
        const option = (category) => {
            const found = answer.configOptions?.find((one) => one.type === 'select' && (one.category ?? one.id) === category);
            return found?.type === 'select'
                ? {
                    current: found.currentValue,
                    set: (value) => agent.request('session/set_config_option', { sessionId, configId: found.id, value }),
                }
                : undefined;
        };
        const { modes, models } = answer;
        this.#mode =
            option('mode') ??
                (modes
                    ? {
                        current: modes.currentModeId,
                        set: (modeId) => agent.request('session/set_mode', { sessionId, modeId }),
                    }
                    : undefined);
        this.#model =
            option('model') ??
                (models
                    ? {
                        current: models.currentModelId,
                        set: (modelId) => agent.request('session/set_model', { sessionId, modelId }),
                    }
                    : undefined);
        this.#defaultModel = this.#model?.current;
        this.models = modelsOf(answer);
    }
    get model() {
        return this.#model?.current ?? '';
    }
    get mode() {
        return this.#mode?.current;
    }
    /** The agent says that it is in another mode now. */
    modeIs(id) {
        if (this.#mode)
            this.#mode.current = id;
    }
    async setMode(id) {
        if (!this.#mode)
            throw new Error('The agent has no modes.');
        await this.#mode.set(id);
        this.#mode.current = id;
    }
    /** @param value undefined: what the agent chose by itself */
    async setModel(value) {
        const chosen = value ?? this.#defaultModel;
        if (!this.#model || chosen === undefined)
            throw new Error('The agent does not let its model be chosen.');
        await this.#model.set(chosen);
        this.#model.current = chosen;
    }
}
function modelsOf({ configOptions, models }) {
    const option = configOptions?.find((one) => one.type === 'select' && (one.category ?? one.id) === 'model');
    const choices = option?.type === 'select'
        ? option.options
            .flatMap((one) => ('options' in one ? one.options : [one]))
            .map(({ value, name, description }) => ({ value, displayName: name, description }))
        : (models?.availableModels ?? []).map(({ modelId, name, description }) => ({
            value: modelId,
            displayName: name,
            description,
        }));
    return choices.map(({ value, displayName, description }) => ({
        value,
        displayName,
        ...(description && { description }),
    }));
}
//# sourceMappingURL=session-config.js.map