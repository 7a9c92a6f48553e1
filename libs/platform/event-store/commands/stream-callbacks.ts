import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { parseStreamName, type DomainEvent } from '#platform/kernel/aggregate.js';
import { createId } from '#platform/kernel/randomness.js';
import { toRecorded } from '../port/codec.js';
import { createWrite } from './decide-command.js';
import {
  EventStore,
  type EventRef,
  type NewEvent,
  type StoredEvent,
  type Write,
  type EngineCallbacks,
  type ReadIds,
} from '../port/event-store.js';
import { PersonalKeys } from '../personal-keys/personal-keys.js';
import {
  ALL_READ_MODELS,
  ReadModels,
  toStreamName,
  type AnyReadModel,
} from '../read-models/read-models.js';

/** Decides and projects by the name of a stream, for the event store. */
@Injectable()
export class StreamCallbacks implements EngineCallbacks, OnModuleInit {
  constructor(
    private readonly eventStore: EventStore,
    private readonly readModels: ReadModels,
    private readonly keys: PersonalKeys,
    @Inject(ALL_READ_MODELS) private readonly allReadModels: AnyReadModel[],
  ) {}

  onModuleInit(): void {
    this.eventStore.callbacks = this;
  }

  async decideFollowUp({ stream, events, inputs }: Write, earlierWrites: Write[]): Promise<Write> {
    const { readModel, id } = this.findReadModel(stream);
    const [first] = events;
    // From the read model, however long the history is. A write to the stream meanwhile makes this start again.
    const current = await this.readModels.loadCurrent(readModel, id);
    if (!readModel.followUp || !current || !first)
      throw new Error(`${stream} cannot be decided again`);
    const newEvents = readModel.followUp.decide({
      plannedEvents: await this.openEvents(stream, events),
      state: current.state,
      earlierEvents: (
        await Promise.all(earlierWrites.map((write) => this.openEvents(write.stream, write.events)))
      ).flat(),
      inputs,
    });
    const idsByType = new Map(events.map((event) => [event.type, event.id]));
    const getId = ({ type }: DomainEvent) => {
      const plannedId = idsByType.get(type);
      idsByType.delete(type);
      return plannedId ?? createId();
    };
    const { write } = createWrite({ readModel, id }, current, newEvents, first.meta, getId);
    return {
      ...write,
      events: await this.keys.sealEvents(write.events),
      ...(inputs !== undefined && { inputs }),
    };
  }

  canFollow(stream: string, others: StoredEvent[]): boolean {
    const { allowedEvents = [] } = this.findReadModel(stream).readModel.followUp ?? {};
    return others.every(({ type }) => allowedEvents.includes(type));
  }

  async findBehind(events: EventRef[], read?: ReadIds): Promise<string[]> {
    const streams: string[] = [];
    for (const readModel of this.allReadModels) {
      const ids = await this.readModels.findBehind(readModel, events, read);
      streams.push(...ids.map((id) => toStreamName(readModel, id)));
    }
    return streams;
  }

  async catchUp(stream: string): Promise<void> {
    const { readModel, id } = this.findReadModel(stream);
    await this.readModels.catchUp(readModel, id);
  }

  private async openEvents(stream: string, events: NewEvent[]) {
    const { readModel } = this.findReadModel(stream);
    const placeholder = { stream, revision: 0, hash: '', position: { commit: 0n, prepare: 0n } };
    const openedEvents = await this.keys.openEvents(
      events.map((event) => ({ ...event, ...placeholder })),
    );
    return openedEvents.map((event) => toRecorded<DomainEvent>(readModel, event));
  }

  private findReadModel(stream: string): { readModel: AnyReadModel; id: number } {
    const { id } = parseStreamName(stream);
    const readModel = this.allReadModels.find(
      (candidate) => toStreamName(candidate, id) === stream,
    );
    if (!readModel) throw new Error(`${stream} belongs to no aggregate`);
    return { readModel, id };
  }
}
