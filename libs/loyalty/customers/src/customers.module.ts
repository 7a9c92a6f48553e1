import { Module } from '@nestjs/common';
import { StampingModule } from '#stamping/stamping.module.js';
import { customerHandlers } from './customer.commands.js';
import { CustomersController } from './customers.controller.js';
import { CustomersService } from './customers.service.js';

@Module({
  imports: [StampingModule],
  controllers: [CustomersController],
  providers: [CustomersService, ...customerHandlers],
})
export class CustomersModule {}
